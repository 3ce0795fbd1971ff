//! A terminal for a program, created by script(1), which Debian always has.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::program::PATIENCE;

/// Time between two readings of the screen.
const LOOK: Duration = Duration::from_millis(20);

/// A terminal and its screen.
pub struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

impl Terminal {
    /// Runs a shell `command` on a terminal of this size. After its end prints its exit code, and whether the terminal
    /// has its earlier settings.
    pub fn start(command: &str, rows: u16, columns: u16) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pid = directory.path().join("pid").display().to_string();
        // `exec` in a subshell, so the subshell's process number is the program's.
        let inside = format!(
            "stty rows {rows} cols {columns}; before=$(stty -g); (echo $BASHPID > {pid}; exec env {command}); \
             echo code $?; [ \"$(stty -g)\" = \"$before\" ] && echo settings are as before"
        );
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "script", "--quiet", "--return", "--command", &inside, "/dev/null"])
            .env("SHELL", "/bin/bash")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script(1) is there");
        let (keys, mut output) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let shared = screen.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).process(&bytes[..count]);
            }
        });
        Self { child, keys, screen, reader: Some(reader), directory }
    }

    fn parser(&self) -> MutexGuard<'_, vt100::Parser> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the contents of the screen.
    pub fn screen(&self) -> String {
        self.parser().screen().contents()
    }

    /// Waits for a screen for which `is_so` holds, and returns it.
    #[track_caller]
    pub fn wait(&self, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "after {PATIENCE:?} the screen is\n{screen}");
            sleep(LOOK);
        }
    }

    /// Whether `word` is on the screen in red.
    pub fn is_red(&self, word: &str) -> bool {
        let parser = self.parser();
        let (rows, columns) = parser.screen().size();
        (0..rows).any(|row| {
            let line = parser.screen().rows(0, columns).nth(row.into()).unwrap_or_default();
            // Columns are counted in characters: none of these screens has wide ones.
            let column = line.find(word).map(|at| line[..at].chars().count() as u16);
            let cell = column.and_then(|column| parser.screen().cell(row, column));
            cell.is_some_and(|cell| matches!(cell.fgcolor(), vt100::Color::Idx(1 | 9)))
        })
    }

    /// Types `keys`.
    pub fn press(&mut self, keys: &str) {
        let stdin = self.keys.as_mut().expect("it has not ended");
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).expect("script reads keys");
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).expect("it has begun");
        let status = Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status().expect("kill(1)");
        assert!(status.success());
    }

    /// Waits for the end of the program and returns the screen.
    #[track_caller]
    pub fn finish(&mut self) -> String {
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait().expect("it is our child").is_none() {
            assert!(Instant::now() < end, "it does not end: {}", self.screen());
            sleep(LOOK);
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.screen()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
