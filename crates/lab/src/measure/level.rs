//! Instruction levels of x86-64: the program for each level and the environment that the program
//! needs.
//!
//! A level is a set of instructions (x86-64 psABI, "Micro-Architecture Levels"). A program stays
//! within a level under two conditions:
//!
//! - It is built for the level. Therefore each level has its own program.
//! - Code that selects better instructions at run time does not find any. The environment of the
//!   program ensures this.
//!
//! Libraries read this environment before `main`. Therefore a child process measures each level.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An instruction level of x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// All instructions of this machine.
    #[serde(rename = "native")]
    Native,
    /// With AVX2, BMI and FMA; without AVX-512.
    #[serde(rename = "x86-64-v3")]
    X86_64V3,
    /// With SSE4.2; without AVX.
    #[serde(rename = "x86-64-v2")]
    X86_64V2,
}

/// Environment variables and their values.
pub(crate) type Environment = &'static [(&'static str, &'static str)];

/// Properties of a level.
struct Row {
    level: Level,
    name: &'static str,
    /// Environment variable that can contain the path of the level's program.
    variable: &'static str,
    /// File name of the level's program, in the directory of the running program.
    file: &'static str,
    /// Environment of the program, which masks instructions above the level.
    environment: Environment,
    /// CPU features that the level needs, with the names of `/proc/cpuinfo`.
    features: &'static [&'static str],
}

/// Environment variable that hides features found with CPUID from aws-lc and OpenSSL: `~` and the
/// bits of leaf 1, then those of leaf 7.
const CRYPTO_MASK: &str = "OPENSSL_ia32cap";
/// Environment variable that hides the features by which the C library selects its copy functions.
const GLIBC_MASK: &str = "GLIBC_TUNABLES";
/// Variables that mask instructions. The laboratory ignores the user's values of these variables at
/// every level.
pub(crate) const MASKS: [&str; 2] = [CRYPTO_MASK, GLIBC_MASK];

/// All levels except `native`. Both environments mask the instructions above the level, and also
/// AES-NI, PCLMULQDQ, SHA, ADX and RDRAND, which belong to no level.
const LEVELS: &[Row] = &[
    Row {
        level: Level::X86_64V3,
        name: "x86-64-v3",
        variable: "NONESUCH_X86_64_V3",
        file: "nonesuch-x86-64-v3",
        environment: &[
            (CRYPTO_MASK, "~0x4200080200000000:~0xfffffffffffffed7"),
            (GLIBC_MASK, "glibc.cpu.hwcaps=-ERMS,-FSRM,-AVX512F,-AVX512VL,-AVX512BW"),
        ],
        features: &["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"],
    },
    Row {
        level: Level::X86_64V2,
        name: "x86-64-v2",
        variable: "NONESUCH_X86_64_V2",
        file: "nonesuch-x86-64-v2",
        environment: &[
            (CRYPTO_MASK, "~0x7240180200000000:~0xffffffffffffffff"),
            (
                GLIBC_MASK,
                "glibc.cpu.hwcaps=-AVX,-AVX2,-BMI1,-BMI2,-LZCNT,-MOVBE,-ERMS,-FSRM,-AVX512F,-AVX512VL,-AVX512BW,\
                 -AVX_Fast_Unaligned_Load",
            ),
        ],
        features: &["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"],
    },
];

/// A program that uses only the instructions of a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelProgram {
    #[serde(skip)]
    pub program: PathBuf,
    /// Environment that the program needs. [`Self::command`] removes other masks from the
    /// environment.
    pub environment: Environment,
}

/// Reasons why a level cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LevelError {
    #[error("{0}: this machine is not an x86-64 machine")]
    Architecture(&'static str),
    #[error("{0}: this processor does not support all instructions of this level")]
    Processor(&'static str),
    #[error("{name}: {variable} is {}, which is not a file", path.display())]
    Named { name: &'static str, variable: &'static str, path: PathBuf },
    #[error("{name}: there is no {}: build it with `tools/build-level {name}`, or set {variable} to the path of a program", path.display())]
    Missing { name: &'static str, variable: &'static str, path: PathBuf },
}

impl LevelProgram {
    /// A program that uses all instructions of this machine.
    pub fn native(program: &Path) -> Self {
        Self { program: program.to_path_buf(), environment: &[] }
    }

    /// Returns a command without arguments that starts the program.
    pub fn command(&self) -> Command {
        let mut command = command_with_all_cpu_features(&self.program);
        command.envs(self.environment.iter().copied());
        command
    }
}

/// Returns a command without arguments that starts a program with all instructions of the machine.
pub(crate) fn command_with_all_cpu_features(program: &Path) -> Command {
    let mut command = Command::new(program);
    MASKS.iter().for_each(|mask| _ = command.env_remove(mask));
    command
}

impl Level {
    /// Returns the name of the level in experiments.
    pub fn name(self) -> &'static str {
        self.row().map_or("native", |row| row.name)
    }

    /// Returns the environment that keeps the libraries of any program within this level, if they
    /// read these variables.
    ///
    /// # Errors
    /// Fails if this machine does not support the level.
    pub fn environment(self) -> Result<Environment, LevelError> {
        let Some(row) = self.row() else { return Ok(&[]) };
        row.require()?;
        Ok(row.environment)
    }

    fn row(self) -> Option<&'static Row> {
        LEVELS.iter().find(|row| row.level == self)
    }

    /// Returns the program of this level: the path in the environment variable of the level, or the
    /// file in the directory of the program `ours`.
    ///
    /// For [`Level::Native`] the result is `None` if this process can measure the level itself,
    /// because no mask is set in its environment.
    ///
    /// # Errors
    /// Fails if the machine does not support the level or the program does not exist.
    pub fn find(self, ours: &Path) -> Result<Option<LevelProgram>, LevelError> {
        let Some(row) = self.row() else {
            let masked = MASKS.iter().any(|mask| std::env::var_os(mask).is_some());
            return Ok(masked.then(|| LevelProgram::native(ours)));
        };
        row.require()?;
        locate(row, ours, std::env::var_os(row.variable)).map(Some)
    }
}

impl Row {
    /// Checks that this machine supports the level.
    fn require(&self) -> Result<(), LevelError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(LevelError::Architecture(self.name));
        }
        let has_all = crate::machine::has_features(self.features);
        has_all.then_some(()).ok_or(LevelError::Processor(self.name))
    }
}

fn locate(row: &Row, ours: &Path, variable: Option<OsString>) -> Result<LevelProgram, LevelError> {
    let named = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
    let program = match &named {
        Some(path) => path.clone(),
        None => ours.with_file_name(row.file),
    };
    if program.is_file() {
        return Ok(LevelProgram { program, environment: row.environment });
    }
    let name = row.name;
    let variable = row.variable;
    Err(match named {
        Some(path) => LevelError::Named { name, variable, path },
        None => LevelError::Missing { name, variable, path: program },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_variable_then_beside_ours() {
        let directory = tempfile::tempdir().expect("a directory");
        let ours = directory.path().join("nonesuch");
        let row = Level::X86_64V2.row().expect("a row");
        let beside = directory.path().join("nonesuch-x86-64-v2");
        let missing = locate(row, &ours, None).expect_err("nothing there");
        assert!(missing.to_string().contains("`tools/build-level x86-64-v2`"), "{missing}");
        let LevelError::Missing { name, variable, path } = missing else { panic!("{missing}") };
        assert_eq!((name, variable, &path), ("x86-64-v2", "NONESUCH_X86_64_V2", &beside));
        let wrong = locate(row, &ours, Some("/nothing/there".into())).expect_err("nothing there");
        let LevelError::Named { name, variable, path } = wrong else { panic!("{wrong}") };
        assert_eq!((name, variable), ("x86-64-v2", "NONESUCH_X86_64_V2"));
        assert_eq!(path, Path::new("/nothing/there"));
        std::fs::write(&beside, "").expect("written");
        let found = locate(row, &ours, None).expect("found");
        assert_eq!(found.program, beside);
        assert_eq!(found.environment.len(), row.environment.len());
        std::fs::write(&ours, "").expect("written");
        let found = locate(row, Path::new("/x/nonesuch"), Some(ours.clone().into())).expect("found");
        assert_eq!(found.program, ours);
    }

    #[test]
    fn names_are_those_of_the_files() {
        for row in LEVELS {
            assert_eq!(serde_json::json!(row.level), row.name);
            assert_eq!(row.level.name(), row.name);
        }
        assert_eq!(serde_json::json!(Level::Native), Level::Native.name());
    }

    #[test]
    fn masks_of_the_user_do_not_leak_into_a_level() {
        let program = |environment: Environment| LevelProgram { program: "x".into(), environment };
        let masks = |command: &Command| -> Vec<Option<String>> {
            let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
            let found = |mask: &&str| command.get_envs().find(|(name, _)| name == mask);
            MASKS.iter().map(|mask| found(mask).expect("set or removed").1.map(text)).collect()
        };
        assert_eq!(masks(&program(&[]).command()), [None, None]);
        assert_eq!(masks(&program(&[(CRYPTO_MASK, "~1")]).command()), [Some("~1".to_owned()), None]);
        for row in LEVELS {
            assert_eq!(row.environment.iter().map(|(name, _)| *name).collect::<Vec<_>>(), MASKS);
        }
    }
}
