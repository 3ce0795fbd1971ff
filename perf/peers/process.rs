//! Starts programs and ends each by its own process id, even after an error.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// Time that a program has to end after SIGINT.
const GRACE: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(10);
/// Lines of a program's log that an error quotes.
const LAST_LINES: usize = 4;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes [`nap`] fail after SIGINT or SIGTERM, so that everything is undone on the way out.
pub fn catch_signals() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            INTERRUPTED.store(true, Ordering::Relaxed);
            // A second signal ends the process at once.
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            std::process::exit(130);
        });
    });
    Ok(())
}

/// Whether the user has interrupted the run.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Sleeps for `time`; an error if the run is interrupted.
pub fn nap(time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if interrupted() {
            bail!("interrupted");
        }
        std::thread::sleep(NAP.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

/// A running program with its output in a file. Dropping the value ends the program.
pub struct Running {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Running {
    /// Starts `command` on `cpus` (a list as for taskset). If this process is killed, the program is killed too.
    pub fn start(name: &str, command: &Command, cpus: &str, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut wrapped = Command::new("setpriv");
        wrapped.args(["--pdeathsig", "KILL", "taskset", "-c", cpus]).arg(command.get_program());
        wrapped.args(command.get_args()).stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        for (key, value) in command.get_envs() {
            wrapped.env(key, value.unwrap_or_default());
        }
        let child = wrapped.spawn().context("cannot start setpriv, of Debian's util-linux")?;
        Ok(Self { child, name: name.to_owned(), log: log.to_owned() })
    }

    /// Returns an error with the last lines of the log if the program has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.complaint(&format!("ended by itself ({status})"))),
        }
    }

    /// An error about this program, with the last lines of its log.
    pub fn complaint(&self, what: &str) -> anyhow::Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
        anyhow!("{} {what}; its last words: {last} (all of them: {})", self.name, self.log.display())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // setpriv and taskset replace themselves, so the process id is that of the program.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).stderr(Stdio::null()).status();
        let end = Instant::now() + GRACE;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(NAP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a short command to its end, and returns its output.
pub fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
