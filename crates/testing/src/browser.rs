//! Lets tests control a headless Chromium through ChromeDriver: WebDriver (W3C Recommendation),
//! JSON over HTTP.

use crate::require_peer;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit of one command of the protocol, and of a download.
const LIMIT: Duration = Duration::from_secs(60);

/// Arguments of Chromium. It has no name resolution and no background services, so that it sends
/// nothing to the network. Its sandbox does not work for root and in containers.
const ARGUMENTS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
];

/// A session of a headless browser. It ends when the value is dropped.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    /// Path of the session in the protocol.
    session: String,
    /// Home directory of the browser, with its profile and downloads.
    home: TempDir,
}

impl Browser {
    /// Starts a browser. Returns `None` and records a skip if Chromium or ChromeDriver is not
    /// installed.
    ///
    /// # Panics
    /// If an installed browser does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        require_peer!("chromium", "chromedriver");
        let home = tempfile::tempdir().expect("a directory");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is started");
        let output = BufReader::new(driver.stdout.take().expect("a pipe"));
        let port = output.lines().map_while(Result::ok).find_map(|line| {
            line.split_once("started successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        let port = port.expect("chromedriver prints its port");
        let mut browser = Self { driver, port, session: String::new(), home };
        let created = browser.command("POST", "/session", &browser.capabilities());
        browser.session = format!("/session/{}", created["sessionId"].as_str().expect("a session"));
        Some(browser)
    }

    fn capabilities(&self) -> Value {
        let downloads = self.home.path().join("downloads");
        json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": ARGUMENTS, "prefs": { "download.default_directory": downloads } },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        }}})
    }

    /// Opens a file.
    ///
    /// # Panics
    /// If the browser reports an error.
    pub fn open(&self, file: &Path) {
        self.session_command("/url", &json!({ "url": format!("file://{}", file.display()) }));
    }

    /// Runs the body of a JavaScript function in the page, and returns its value.
    ///
    /// # Panics
    /// If the function throws an exception.
    pub fn run(&self, script: &str) -> Value {
        self.session_command("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Clicks, as a user does, the first element that the CSS selector matches.
    ///
    /// # Panics
    /// If there is no such element, or if it is not visible.
    pub fn click(&self, selector: &str) {
        let found = self.session_command("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|found| found.values().next()?.as_str());
        self.session_command(&format!("/element/{}/click", id.expect("an element")), &json!({}));
    }

    /// Runs a command of the Chrome DevTools Protocol.
    ///
    /// # Panics
    /// If the command fails.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.session_command("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Returns the entries of the console log since the last call, as JSON text (level, source,
    /// message).
    ///
    /// # Panics
    /// If the browser reports an error.
    #[must_use]
    pub fn console(&self) -> Vec<String> {
        self.log("browser").iter().map(Value::to_string).collect()
    }

    /// Returns the URLs that the page requested since the last call.
    ///
    /// # Panics
    /// If the browser reports an error.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let events = self.log("performance");
        let events = events.iter().filter_map(|entry| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let request = &event["message"];
            let is_request = request["method"] == "Network.requestWillBeSent";
            is_request.then(|| request["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
        });
        events.collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.session_command("/se/log", &json!({ "type": kind }));
        entries.as_array().cloned().expect("a list")
    }

    /// Returns the content of a downloaded file, when the download is complete.
    ///
    /// # Panics
    /// If there is no such file within a minute.
    #[must_use]
    pub fn downloaded(&self, name: &str) -> String {
        let path = self.home.path().join("downloads").join(name);
        let begin = Instant::now();
        // Chromium renames the file to its name at the end of the download.
        while !path.exists() {
            assert!(begin.elapsed() < LIMIT, "no download {name}");
            thread::sleep(Duration::from_millis(5));
        }
        fs::read_to_string(path).expect("a text")
    }

    /// Sends a command of the session.
    fn session_command(&self, path: &str, body: &Value) -> Value {
        self.command("POST", &format!("{}{path}", self.session), body)
    }

    /// Sends a WebDriver command; panics if the status is not 200; returns the member `value`.
    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.http_request(method, path, &body.to_string()).expect("an answer");
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer["value"].clone()
    }

    /// Sends a request (HTTP/1.1, RFC 9112), and returns the status and the body of the response.
    fn http_request(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, Value)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once([' ', ':']) {
                Some(("HTTP/1.1", rest)) => status = rest[..3].parse().expect("a status"),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().expect("a length");
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text)?;
        Ok((status, serde_json::from_slice(&text)?))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends Chromium. A failed test may have ended it already.
        let _ = self.http_request("DELETE", &self.session, "");
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
