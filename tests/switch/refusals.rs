//! Machines that lack a resource that the configuration needs. The error is one sentence with the cause and the remedy,
//! without a panic or a line of DPDK's log.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::launch::{finish, run};
use crate::process::{Ended, Process, mortal};
use crate::program::{Config, HOLDFAST, is_root};

/// A second port, which needs no resource, and its host.
const RING: &str = "  - {name: p2, device: ring, speed: 10G}\nhosts: [{name: h1, port: p2}]\n";

/// Returns a configuration whose first port is `device`.
fn with_device(device: &str) -> Config {
    with_device_and(device, "")
}

/// Returns a configuration whose first port is `device`, with `keys`.
fn with_device_and(device: &str, keys: &str) -> Config {
    Config::new(&format!("ports:\n  - {{name: p1, device: \"{device}\", speed: 10G{keys}}}\n{RING}"))
}

/// Returns a configuration on in-process ports, with `keys`.
fn with_keys(keys: &str) -> Config {
    Config::new(&format!("{keys}\nports:\n{RING}"))
}

fn refused(config: &Config, parts: &[&str]) {
    let ended = finish(run(&[&config.path(), "--duration", "1s", "--metrics", "off"]));
    assert_one_sentence(&ended, 1, parts);
}

/// Asserts that standard error is one line with all of `parts`, and that there is no other output.
#[track_caller]
fn assert_one_sentence(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    for part in parts {
        assert!(ended.stderr.contains(part), "`{part}` is missing: {}", ended.stderr);
    }
    for noise in ["panicked", "RUST_BACKTRACE", "EAL: "] {
        assert!(!ended.stderr.contains(noise), "{}", ended.stderr);
    }
}

/// DPDK's libraries run code before `main` that an older processor does not have.
#[test]
fn older_processor_is_named_before_any_library_runs() {
    let emulator = "qemu-x86_64";
    if Command::new(emulator).arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "there is no {emulator}; install qemu-user");
        return eprintln!("skipped: there is no {emulator}; install qemu-user");
    }
    let version = |processor: &str| {
        let mut command = mortal(emulator);
        command.args(["-cpu", processor, HOLDFAST, "--version"]);
        Process::spawn(command).wait(Duration::from_secs(60))
    };
    assert_one_sentence(&version("Conroe"), 1, &["this processor lacks SSE4.2", "--no-default-features"]);
    let newer = version("Nehalem");
    assert!(newer.status.success() && newer.stdout.contains("packet path: SSE4.1"), "{newer:?}");
}

#[test]
fn missing_driver_is_refused() {
    let parts = ["port `p1`: no driver matches `net_bogus0`", "net_tap0", "install the driver's package"];
    refused(&with_device("net_bogus0"), &parts);
}

#[test]
fn missing_interface_is_refused() {
    if !is_root() {
        return eprintln!("skipped: only root gets as far as the interface");
    }
    refused(
        &with_device("net_af_packet0,iface=hf-none"),
        &["port `p1`", "hf-none", "not a network interface here", "ip link"],
    );
}

#[test]
fn device_that_its_driver_rejects_is_refused() {
    refused(&with_device("net_null0,size=many"), &["port `p1`", "net_null0"]);
}

#[test]
fn unusable_memif_socket_is_refused_and_stale_one_is_replaced() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = |path: &Path| {
        let socket = path.display();
        let device = format!("net_memif0,role=server,id=0,socket={socket},socket-abstract=no");
        with_device_and(&device, ", trust_peer: true")
    };
    let path = directory.path().join("memif.sock");
    let started = || {
        let ended = finish(run(&[&server(&path).path(), "--duration", "1s", "--metrics", "off"]));
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    };
    // The socket file has no listener, as after SIGKILL.
    drop(UnixListener::bind(&path).expect("a socket"));
    started();
    let live = UnixListener::bind(&path).expect("a socket");
    refused(
        &server(&path),
        &["memif.sock of `net_memif0` is in use", "stop the other switch that listens there", "`socket=`"],
    );
    drop(live);
    std::fs::remove_file(&path).expect("it is still there");
    std::fs::write(&path, "somebody's").expect("a file");
    refused(
        &server(&path),
        &["memif.sock of `net_memif0` at the path of a file of another kind", "move that file away"],
    );
    assert_eq!(std::fs::read_to_string(&path).expect("it is still there"), "somebody's");
    refused(
        &server(&directory.path().join("none/memif.sock")),
        &["a directory that does not exist", "create the directory"],
    );
}

#[test]
fn missing_pci_device_is_refused() {
    let parts = ["there is no PCI device 0000:ff:1f.7 on this machine", "dpdk-devbind.py"];
    refused(&with_device("0000:ff:1f.7"), &parts);
}

#[test]
fn missing_hugepages_are_refused() {
    // More memory than any machine has.
    let config = with_keys("eal: {memory: huge}\nbuffer: {size: 32GiB}");
    refused(&config, &["no free hugepages", "vm.nr_hugepages"]);
}

#[test]
fn insufficient_memory_is_refused() {
    let config = with_keys("eal: {memory: nohuge}\nbuffer: {size: 32GiB, cell: 160B}");
    refused(&config, &["MiB are free", "smaller buffer"]);
}

#[test]
fn missing_cpu_is_refused() {
    for key in ["dataplane", "control"] {
        let config = with_keys(&format!("lcores: {{{key}: 1023}}"));
        refused(&config, &[&format!("`lcores.{key}: 1023` is not among the CPUs"), "choose one of those"]);
    }
}

#[test]
fn umwait_on_cpu_without_it_is_refused() {
    if std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|cpus| cpus.contains(" waitpkg")) {
        return eprintln!("skipped: this CPU has it");
    }
    refused(
        &with_keys("lcores: {idle: umwait}"),
        &["`lcores.idle`: this CPU has no UMWAIT", "`wait: sleep` or `wait: pause`"],
    );
}

/// No sleep ends exactly on time.
#[test]
fn idle_wake_below_the_measured_wake_up_time_is_refused() {
    let idle = "idle: {wait: sleep, longest: 50us, wake: 0us, lossless: true}";
    let config = with_keys(&format!("preset: roce\nlcores: {{poll_gap: 100us, {idle}}}"));
    refused(&config, &["`lcores.idle.wake: 0ns` is too short here: lcore 0", "write `wake: ", "`idle: poll`"]);
}

#[test]
fn unknown_eal_argument_is_refused() {
    let parts = ["starting DPDK with these arguments (", "--no-such-thing", "`eal.args`"];
    let config = with_keys("eal: {args: [--no-such-thing]}");
    let mut ended = finish(run(&[&config.path(), "--duration", "1s", "--metrics", "off"]));
    // Since 24.11 DPDK reads its arguments before it reads how to log, and says a line of its own.
    let ours = ended.stderr.lines().filter(|line| *line != "EAL: Invalid 'command line' arguments.");
    ended.stderr = ours.map(|line| format!("{line}\n")).collect();
    assert_one_sentence(&ended, 1, &parts);
}

#[test]
fn tap_without_permission_is_refused() {
    let program = crate::unprivileged::Nobody::new();
    let config = program.config("ports:\n  - {name: p1, device: \"net_tap0,iface=hf0\", speed: 10G}\n");
    let ended = finish(program.run(&[&config, "--duration", "1s", "--metrics", "off"]));
    let part =
        if std::path::Path::new("/dev/net/tun").exists() { "no permission for " } else { "/dev/net/tun does not" };
    assert_one_sentence(&ended, 1, &["port `p1`", part]);
}

#[test]
fn missing_configuration_file_is_refused() {
    let ended = finish(run(&["/nonexistent/switch.yaml"]));
    assert_one_sentence(&ended, 2, &["/nonexistent/switch.yaml: cannot be read", "check the path"]);
}

#[test]
fn too_few_file_descriptors_are_refused() {
    // With fewer the program loader fails.
    for limit in [8, 9, 10, 12, 16, 20, 24, 40, 64, 128] {
        for more in [&["--metrics", "off"][..], &["--metrics", "127.0.0.1:0"]] {
            let script = format!("ulimit -n {limit}; exec \"$@\"");
            let mut command = mortal("sh");
            command.args(["-c", &script, "sh", HOLDFAST, "run", "--duration", "1s"]).args(more);
            let ended = finish(command);
            let told = ended.told().join("\n");
            assert_one_sentence(&Ended { stderr: told, ..ended }, 1, &["ulimit -n"]);
        }
    }
}

#[test]
fn clients_with_too_few_file_descriptors_are_refused() {
    for limit in [8, 12] {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let mut command = mortal("sh");
        command.args(["-c", &script, "sh", HOLDFAST, "show", "ports", "--socket", "/tmp/none"]);
        assert_one_sentence(&finish(command), 1, &["ulimit -n"]);
    }
}
