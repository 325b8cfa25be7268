mod limits;
mod revocation;
mod state_file;
mod transitions;
