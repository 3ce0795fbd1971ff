//! Lcores and transmit queues of the switches in these tests: one lcore, two, or two with joint ports.
//!
//! This program is compiled once. It runs most tests in the first layout. Two further tests run the program again, with
//! another layout in its environment.

use std::process::Command;
use std::sync::LazyLock;

/// Names the layout of a run: `two` or `joint`.
const VARIABLE: &str = "HOLDFAST_TEST_LAYOUT";

/// Tests whose switches have one lcore or a layout of their own.
const ONCE: &[&str] = &[
    "ahead::",
    "interrupted::",
    "joint::",
    "layout::",
    "lcores::",
    "max_load::",
    "resting::",
    "roce::",
    "rounds::",
    "shed::",
    "stopping::",
    "why::",
    "wire_clock::",
    "wred::",
];

/// Lcores of a switch, and transmit queues of its ports.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub lcores: u8,
    pub tx_queues: u8,
}

impl Layout {
    pub const ONE: Self = Self { lcores: 1, tx_queues: 1 };
    /// Ports belong to the lcores in turn, so frames between neighbouring ports cross by rings.
    pub const TWO: Self = Self { lcores: 2, tx_queues: 1 };
    /// Each lcore has a transmit queue at every port, so no frame crosses.
    pub const JOINT: Self = Self { lcores: 2, tx_queues: 2 };

    /// The layout of this run.
    pub fn current() -> Self {
        static CURRENT: LazyLock<Layout> = LazyLock::new(|| match std::env::var(VARIABLE).as_deref() {
            Err(_) => Layout::ONE,
            Ok("two") => Layout::TWO,
            Ok("joint") => Layout::JOINT,
            Ok(other) => panic!("{VARIABLE}: {other}"),
        });
        *CURRENT
    }

    pub const fn is_joint(self) -> bool {
        self.tx_queues > 1
    }
}

/// Runs this program in the layout `name`, without the tests whose names contain one of [`ONCE`] or `skipped`.
fn run_again(name: &str, skipped: &[&str]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(VARIABLE, name).arg("--quiet");
    for part in ONCE.iter().chain(skipped) {
        command.args(["--skip", part]);
    }
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    let passed = text.split(" passed;").next().and_then(|text| text.rsplit(' ').next()).and_then(|n| n.parse().ok());
    assert!(passed.is_some_and(|passed: usize| passed > 100), "{text}");
}

#[test]
fn tests_pass_on_two_lcores() {
    run_again("two", &[]);
}

#[test]
fn tests_pass_on_two_lcores_with_joint_ports() {
    run_again("joint", &["pfc_nic::", "qcn::", "stations::", "telemetry::"]);
}
