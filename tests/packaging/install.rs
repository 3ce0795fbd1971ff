//! Packages for DPDK of any version, and their installation: with stand-ins for apt, dpkg, sudo and the compiler.

use super::*;

/// A machine of stand-ins: apt knows DPDK 25.11, and nothing is installed.
struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        machine.tool("id", "echo 0");
        machine.tool("dpkg-query", "exit 1");
        machine.tool(
            "apt-cache",
            "case $* in *libdpdk-dev) echo 'Depends: libnuma-dev, librte-eal26 (= 25.11-1), librte-acl26';; \
             *nfdump-sflow) exit 100;; *) echo Package:;; esac",
        );
        machine.tool("apt-get", &format!("echo apt-get $* >>{}", machine.path("notes").display()));
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn tool(&self, name: &str, text: &str) {
        script(&self.path("bin").join(name), text);
    }

    /// Runs a program of the repository with the stand-ins before the machine's own programs.
    fn run(&self, program: &str, arguments: &[&str]) -> (Output, String) {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(repository(""));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        let output = command.env("POLICY_RC_D", self.path("policy")).output().expect("a program");
        let notes = fs::read_to_string(self.path("notes")).unwrap_or_default();
        (output, notes)
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn packages_have_the_abi_number_of_the_dpdk_that_is_there() {
    let machine = Machine::new();
    let names = || said(&machine.run("docker/packages", &["run", "nic", "test"]).0);
    let all = names();
    for name in ["librte-net-tap26", "librte-fib26", "librte-net-mlx5-26", "nfdump", "iproute2"] {
        assert!(all.lines().any(|line| line == name), "{name}: {all}");
    }
    assert!(!all.contains("nfdump-sflow"), "apt does not know it: {all}");
    // An installed DPDK precedes that of apt.
    machine.tool("dpkg-query", "echo ' libbsd-dev, librte-eal24 (= 23.11.4-0ubuntu0.24.04.1)'");
    let all = names();
    assert!(all.contains("librte-net-tap24\n") && !all.contains("26\n"), "{all}");
    machine.tool("dpkg-query", "exit 1");
    machine.tool("apt-cache", "exit 100");
    let (output, _) = machine.run("docker/packages", &["run"]);
    assert!(!output.status.success() && said(&output).contains("run apt-get update"), "{output:?}");
}

#[test]
fn missing_packages_are_installed_without_starting_services() {
    let machine = Machine::new();
    let policy = machine.path("policy");
    let note = format!("[ -x {0} ] && echo apt-get $* >>{1}", policy.display(), machine.path("notes").display());
    machine.tool("apt-get", &note);
    let (output, notes) = machine.run("docker/install-packages", &["build", "run"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        notes.starts_with("apt-get update -q\napt-get install -q -y --no-install-recommends libdpdk-dev "),
        "{notes}"
    );
    assert!(notes.contains(" librte-net-tap26") && !policy.exists(), "{notes}");
    machine.tool("apt-get", "exit 100");
    let (output, _) = machine.run("docker/install-packages", &["build"]);
    assert!(!output.status.success() && !policy.exists(), "{output:?}");
}

#[test]
fn installed_packages_need_neither_apt_nor_root() {
    let machine = Machine::new();
    machine.tool("id", "echo 1000");
    machine.tool("sudo", "exit 1");
    machine.tool("apt-cache", "exit 100");
    machine.tool(
        "dpkg-query",
        "case $* in *Depends*) echo ' librte-eal25 (= 24.11)';; *) printf 'install ok installed';; esac",
    );
    let (output, notes) = machine.run("docker/install-packages", &["build", "run", "test"]);
    assert!(output.status.success() && said(&output).is_empty() && notes.is_empty(), "{output:?} {notes}");
}

#[test]
fn sudo_that_times_out_leaves_no_policy_behind() {
    let machine = Machine::new();
    machine.tool("id", "echo 1000");
    // The password is given once; whenever sudo asks again, it is not.
    let asked = machine.path("asked");
    machine.tool(
        "sudo",
        &format!(
            "[ ! -e {0} ] || exit 1\ntouch {0}\nprintf '#!/bin/sh\\necho 0\\n' >{1}\nexec \"$@\"",
            asked.display(),
            machine.path("bin/id").display()
        ),
    );
    let (output, notes) = machine.run("docker/install-packages", &["build"]);
    assert!(output.status.success() && notes.contains("apt-get install"), "{output:?} {notes}");
    assert!(asked.exists() && !machine.path("policy").exists());
    // It is not given at all.
    let machine = Machine::new();
    machine.tool("id", "echo 1000");
    machine.tool("sudo", "echo 'sudo: timed out reading password' >&2; exit 1");
    let (output, notes) = machine.run("docker/install-packages", &["build"]);
    assert!(!output.status.success() && notes.is_empty() && !machine.path("policy").exists(), "{output:?} {notes}");
    assert!(said(&output).contains("root is needed once, by sudo, to install: libdpdk-dev "), "{output:?}");
}

/// RHEL, Fedora, Arch and others.
#[test]
fn system_without_apt_is_told_its_ways() {
    let tools = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink("/usr/bin/dirname", tools.path().join("dirname")).expect("an own directory");
    let mut command = Command::new("/bin/sh");
    command.args(["docker/install-packages", "build"]).current_dir(repository("")).env("PATH", tools.path());
    let output = command.output().expect("a shell");
    let said = said(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    for way in ["static release", "container image", "cargo install", "docs/install.md#systems"] {
        assert!(said.contains(way), "{way}: {said}");
    }
}

#[test]
fn missing_cargo_is_told_before_packages_are_installed() {
    if !has("make") {
        return;
    }
    let machine = Machine::new();
    let target = format!("CARGO_TARGET_DIR={}", machine.path("target").display());
    let (output, notes) = machine.run("make", &["build", "CARGO=no-such-cargo", &target]);
    let text = said(&output);
    assert!(!output.status.success() && notes.is_empty(), "{text} {notes}");
    assert!(text.contains("error: there is no no-such-cargo; install Rust 1.90 or newer"), "{text}");
    // With one, the time and the packages are told before both.
    machine.tool("cargo", "echo cargo $*");
    let (output, notes) = machine.run("make", &["build", "CARGO=cargo", &target]);
    let text = said(&output);
    assert!(output.status.success() && notes.contains("apt-get install"), "{text} {notes}");
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place("first time") < place("installing:") && place("installing:") < place("cargo build"), "{text}");
    // Once the program is there, nothing is announced.
    script(&machine.path("target/release/holdfast"), "exit 0");
    assert!(!said(&machine.run("make", &["build", "CARGO=cargo", &target]).0).contains("first time"));
}
