//! Runs the commands that pages show for a running switch: those of docs/show.md, docs/quickstart.md, docs/api.md and
//! docs/top.md whose comment names this file. They must succeed; their figures differ from run to run.

use std::process::Stdio;

use crate::blocks::{Block, blocks};
use crate::process::mortal;
use crate::rig::{HOLDFAST, Switch};

/// Seconds after which a command that watches is ended.
const WATCHED: &str = "1";
/// The exit code of `timeout` for a command that it ended.
const ENDED: i32 = 124;

#[test]
fn commands_on_pages_succeed_on_a_running_switch() {
    let is_ours = |block: &Block| block.mark.as_deref() == Some("run by tests/api/pages.rs");
    let blocks: Vec<Block> = blocks().into_iter().filter(is_ours).collect();
    assert!(!blocks.is_empty(), "no page names {}", file!());
    let switch = Switch::start(&[]);
    let runtime = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(switch.socket(), runtime.path().join("holdfast.sock")).expect("a link");
    let programs = std::path::Path::new(HOLDFAST).parent().expect("a directory").to_string_lossy().into_owned();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    for block in &blocks {
        for line in &block.commands {
            let mut command = mortal("timeout");
            command.args([if line.contains("--watch") { WATCHED } else { "60" }, "sh", "-euc", line]);
            command.env("PATH", &path).env("XDG_RUNTIME_DIR", runtime.path()).env_remove("HOLDFAST_SOCKET");
            command.stdin(Stdio::null());
            let output = command.output().expect("a shell");
            let is_right = output.status.success() || line.contains("--watch") && output.status.code() == Some(ENDED);
            assert!(is_right && !output.stdout.is_empty(), "{}:{}: {line}: {output:?}", block.page, block.line);
        }
    }
    switch.end();
}
