//! The Debian package and the systemd unit, as files: the package has the right contents, and systemd finds no fault
//! with the unit. tests/docker tests installation, operation and removal in a container. Also the script that builds
//! the simulator by a profile, with a compiler that only takes notes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "packaging/install.rs"]
mod install;
#[path = "packaging/notices.rs"]
mod notices;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[track_caller]
fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

#[track_caller]
fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&output(command).stdout).into_owned()
}

/// A script of packaging/. The package is compressed little, which takes a third of the time.
#[cfg(feature = "dpdk")]
fn packaging(script: &str) -> Command {
    let mut build = Command::new(repository("packaging").join(script));
    build.env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
    build
}

/// Whether a program is installed. If it is missing the test is skipped, except in CI, where it fails.
fn has(program: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|it| it.status.success());
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "CI has no {program}: docker/packages.txt");
    if !found {
        eprintln!("SKIPPED: there is no {program}");
    }
    found
}

/// A container engine of tests/docker leaves mounts below its directory when it has ended, here one of a network
/// namespace. The test creates mounts of its own, so it needs root.
#[test]
fn container_engine_mounts_are_unmounted_and_directory_removed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = r#"set -e
        mkdir -p "$1/exec/netns" "$1/data"
        touch "$1/exec/netns/left"
        mount -t tmpfs none "$1/data"
        mkdir "$1/data/layer" && mount -t tmpfs none "$1/data/layer"
        mount --bind /proc/self/ns/net "$1/exec/netns/left"
        ! rm -rf "$1" 2>/dev/null
        mkdir -p "$1/exec/netns"
        "$0" down "$1"
        rm -rf "$1"
        ! grep -F "$1/" /proc/self/mountinfo"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", script]).arg(repository("tests/docker/engine"));
    let output = command.arg(directory.path().join("engine")).output().expect("unshare(1) is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Operation not permitted") {
        return eprintln!("SKIPPED: only root may mount");
    }
    assert!(output.status.success(), "{output:?}");
}

/// Builds a package of the program under test and unpacks it.
#[cfg(feature = "dpdk")]
fn unpacked() -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
    if !["dpkg-deb", "dpkg-shlibdeps", "strip"].into_iter().all(has) {
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut build = packaging("build-deb");
    let package = text(build.arg(env!("CARGO_BIN_EXE_holdfast")).arg(directory.path()));
    let package = PathBuf::from(package.trim());
    let root = directory.path().join("root");
    output(Command::new("dpkg-deb").arg("-x").args([&package, &root]));
    Some((directory, package, root))
}

/// The version names the system whose DPDK the program is linked with. On another the package is not unpacked.
#[cfg(feature = "dpdk")]
#[track_caller]
fn assert_is_for_this_system_only(package: &Path, version: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    output(Command::new("dpkg-deb").arg("-e").arg(package).arg(directory.path()));
    let preinst = directory.path().join("preinst");
    output(Command::new(&preinst).arg("install"));
    let (number, system) = version.split_once('+').unwrap_or_else(|| panic!("{version} names no system"));
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let other = directory.path().join("os-release");
    fs::write(&other, "ID=debian\nVERSION_ID=\"99\"\n").unwrap();
    let refused = Command::new(&preinst).arg("install").env("OS_RELEASE", &other).output().expect("a script");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let expected = format!("needs the DPDK of {system}, and this system is deb99; take holdfast_*+deb99_*.deb");
    assert!(!refused.status.success() && said.contains(&expected), "{said}");
}

/// A field of the package names the drivers of the DPDK that is there.
#[cfg(feature = "dpdk")]
#[track_caller]
fn assert_lists(field: &str, kind: &str) {
    let packages = text(Command::new(repository("docker/packages")).arg(kind));
    assert!(packages.lines().count() > 4, "{packages}");
    for package in packages.lines() {
        assert!(field.split(", ").any(|name| name == package), "{package}: {field}");
    }
}

#[cfg(feature = "dpdk")]
#[test]
fn debian_package_has_its_dependencies_and_files() {
    let Some((_directory, package, root)) = unpacked() else { return };
    let field = |name: &str| text(Command::new("dpkg-deb").arg("-f").arg(&package).arg(name)).trim().to_owned();
    assert_is_for_this_system_only(&package, &field("Version"));
    let depends = field("Depends");
    // Libraries that are linked, drivers that are loaded at run time, and the program that creates the user.
    for package in ["librte-eal", "libc6", "adduser"] {
        assert!(depends.contains(package), "{package}: {depends}");
    }
    assert_lists(&depends, "run");
    assert_lists(&field("Recommends"), "nic");

    let version = text(Command::new(root.join("usr/bin/holdfast")).arg("--version"));
    assert!(version.starts_with(&format!("holdfast {}", env!("CARGO_PKG_VERSION"))), "{version}");
    for file in [
        "lib/systemd/system/holdfast.service",
        "etc/default/holdfast",
        "usr/share/man/man1/holdfast.1.gz",
        "usr/share/man/man1/holdfast-doctor.1.gz",
        "usr/share/man/man5/holdfast.yaml.5.gz",
        "usr/share/bash-completion/completions/holdfast",
        "usr/share/zsh/vendor-completions/_holdfast",
        "usr/share/fish/vendor_completions.d/holdfast.fish",
        "usr/share/doc/holdfast/copyright",
        "usr/share/doc/holdfast/notices/crates.txt",
        "usr/share/doc/holdfast/notices/rust.html",
        "lib/udev/rules.d/05-holdfast.rules",
        "usr/share/doc/holdfast/examples/frr/daemons",
        "usr/share/doc/holdfast/examples/systemd/frr-tor.conf",
        "usr/share/doc/holdfast/examples/prometheus/alerts.yaml",
        "usr/share/doc/holdfast/examples/grafana/dashboards/port.json",
        "usr/share/doc/holdfast/examples/sim/incast.yaml",
        "usr/share/doc/holdfast/docs/sim/README.md",
        // Links of pages lead there.
        "usr/share/doc/holdfast/conf/frr/frr.conf",
    ] {
        assert!(fs::metadata(root.join(file)).is_ok_and(|file| file.len() > 0), "{file}");
    }
    let copyright = fs::read_to_string(root.join("usr/share/doc/holdfast/copyright")).expect("a copyright file");
    assert!(copyright.starts_with("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"));
    assert!(copyright.contains("crates/tokio-") && !copyright.contains("debian/glibc"), "{copyright}");
    assert!(!root.join("etc/holdfast/switch.yaml").exists(), "what is to run there is the operator's to say");
    let names = |directory: &Path, end: &str| -> std::collections::BTreeSet<std::ffi::OsString> {
        let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("a file").file_name());
        entries.filter(|name| name.to_string_lossy().ends_with(end)).collect()
    };
    let share = root.join("usr/share/doc/holdfast");
    assert_eq!(names(&share.join("docs"), ".md"), names(&repository("docs"), ".md"), "each page");
    for (directory, end) in [("conf", ".yaml"), ("conf/systemd", ""), ("conf/prometheus", ".yaml")] {
        assert_eq!(
            names(&share.join(directory), end),
            names(&repository(directory), end),
            "each example of {directory}"
        );
    }
    assert!(!share.join("examples/golden").exists() && !share.join("examples/prometheus/tests").exists());
    // The scripts need nothing beside them: without arguments they print their usage.
    for script in ["tap-tor.sh", "leaf-spine.sh"] {
        let script = root.join("usr/share/doc/holdfast/examples").join(script);
        let ended = Command::new(&script).current_dir("/").output().expect("a program");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && said.starts_with("usage: "), "{ended:?}");
    }
    for script in ["preinst", "postinst", "prerm", "postrm"] {
        let script = repository("packaging").join(script);
        output(Command::new("sh").arg("-n").arg(script));
    }
}

/// Writes an executable script.
fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Writes a stand-in for a static program, which only the whole build makes. Returns it, and a PATH whose `strip`
/// leaves it alone.
#[cfg(feature = "dpdk")]
fn static_program(directory: &Path) -> (PathBuf, String) {
    let (program, real) = (directory.join("holdfast"), env!("CARGO_BIN_EXE_holdfast"));
    script(&program, &format!("[ $1 != --version ] || {{ echo 'DPDK: 1, static'; exit; }}\nexec {real} \"$@\""));
    script(&directory.join("bin/strip"), "");
    (program, format!("{}/bin:{}", directory.display(), std::env::var("PATH").unwrap()))
}

#[cfg(feature = "dpdk")]
#[test]
fn package_of_a_static_program_depends_on_no_library_and_has_their_notices() {
    if !["dpkg-deb", "dpkg-shlibdeps"].into_iter().all(has) {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (program, path) = static_program(directory.path());
    let mut build = packaging("build-deb");
    build.env("PATH", path);
    let package = text(build.arg(&program).arg(directory.path()));
    let field = |name| text(Command::new("dpkg-deb").args(["-f", package.trim(), name])).trim().to_owned();
    assert_eq!((field("Depends"), field("Recommends")), ("adduser".to_owned(), String::new()));
    let list = text(Command::new("dpkg-deb").args(["-c", package.trim()]));
    for file in ["copyright", "notices/debian/libc6-dev.txt", "notices/common-licenses/LGPL-2.1", "notices/sources"] {
        assert!(list.lines().any(|line| line.ends_with(&format!("/usr/share/doc/holdfast/{file}"))), "{file}: {list}");
    }
}

/// The program is a stand-in, so that only the files around it are built twice, in two directories.
#[cfg(feature = "dpdk")]
#[test]
fn release_has_the_same_bytes_in_any_directory_and_its_sums_are_right() {
    if !["dpkg-deb", "dpkg-shlibdeps", "strip", "git"].into_iter().all(has) || !repository(".git").exists() {
        return;
    }
    let stand_in = tempfile::tempdir().expect("a temporary directory");
    let (program, path) = static_program(stand_in.path());
    let release = || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut build = packaging("build-release");
        output(build.env("HOLDFAST_BINARY", &program).env("PATH", &path).arg(directory.path()));
        let sums = fs::read_to_string(directory.path().join("SHA256SUMS")).expect("sums");
        (directory, sums)
    };
    let (directory, sums) = release();
    assert_eq!(release().1, sums);
    output(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(directory.path()));
    let names: Vec<&str> = sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let base = format!("holdfast-{version}-linux-x86_64");
    assert_eq!(names, [format!("{base}.cdx.json"), format!("{base}.tar.gz"), format!("holdfast_{version}_amd64.deb")]);

    let list = text(Command::new("tar").arg("-tzf").arg(directory.path().join(names[1])));
    let files = ["holdfast", "LICENSE", "man/holdfast-run.1", "conf/tap-tor.sh", "conf/containerlab/holdfast.clab.yml"];
    for file in files.into_iter().chain(["notices/copyright", "notices/crates.txt", "notices/common-licenses/LGPL-2.1"])
    {
        assert!(list.lines().any(|line| line == format!("{base}/{file}")), "{file}: {list}");
    }
    let materials = fs::read(directory.path().join(names[0])).expect("a bill of materials");
    let materials: serde_json::Value = serde_json::from_slice(&materials).expect("JSON");
    assert_eq!((&materials["bomFormat"], &materials["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let components = materials["components"].as_array().expect("components");
    let urls: Vec<&str> = components.iter().filter_map(|component| component["purl"].as_str()).collect();
    for part in ["pkg:cargo/clap@", "pkg:cargo/tokio@", "pkg:deb/debian/libdpdk-dev@", "pkg:deb/debian/libc6-dev@"] {
        assert!(urls.iter().any(|url| url.starts_with(part)), "{part}: {urls:?}");
    }
    assert!(!urls.iter().any(|url| url.starts_with("pkg:cargo/bindgen@")), "a tool of the build is no part");
}

/// `make docker-test` measures the size.
#[test]
fn image_has_the_static_program_and_its_size_is_checked() {
    let dockerfile = fs::read_to_string(repository("docker/Dockerfile")).expect("a Dockerfile");
    let last = dockerfile.lines().rfind(|line| line.starts_with("FROM "));
    assert_eq!(last, Some("FROM scratch"));
    assert!(dockerfile.contains("packaging/build-static)"));
    for line in ["packaging/notices /notices static", "COPY docker/source-offer /root-of/usr/share/doc/holdfast/"] {
        assert!(dockerfile.contains(line), "{line}");
    }
    // Metrics are on loopback by default: neither the image nor its configurations say otherwise.
    let configurations =
        ["tor", "hosts"].map(|file| fs::read_to_string(repository(&format!("docker/conf/{file}.yaml"))));
    let all = configurations.into_iter().map(|text| text.expect("a configuration")).chain([dockerfile]);
    assert!(all.into_iter().all(|text| !text.contains("0.0.0.0")));
    let parts = fs::read_to_string(repository("tests/docker/parts.sh")).expect("the test of the image");
    assert!(parts.contains(r#"-lt 100000000 ] || fail "the image has 100 MB or more""#));
}

/// tests/docker starts the topologies.
#[test]
fn lab_topologies_run_a_configuration_and_options_that_exist() {
    let check =
        text(Command::new(env!("CARGO_BIN_EXE_holdfast")).arg("check").arg(repository("conf/containerlab/tor.yaml")));
    assert!(check.contains("conf/containerlab/tor.yaml: valid") && !check.contains("warning"), "{check}");
    let help = text(Command::new(env!("CARGO_BIN_EXE_holdfast")).args(["run", "--help"]));
    for file in ["conf/containerlab/holdfast.clab.yml", "conf/netlab/topology.yml"] {
        let topology = fs::read_to_string(repository(file)).expect(file);
        let command = topology.lines().find_map(|line| line.trim().strip_prefix("cmd: ")).expect("a command");
        assert!(command.starts_with("run /etc/holdfast/lab.yaml "), "{file}: {command}");
        for option in command.split(' ').filter(|word| word.starts_with("--")) {
            assert!(help.contains(&format!("{option} ")), "{file}: {option}");
        }
        assert!(topology.contains("tor.yaml:") && topology.contains("kind: linux"), "{file}");
    }
}

/// The unit may neither enter network namespaces nor write there how Linux routes; with the drop-in of docs/linux.md it
/// may.
#[test]
fn systemd_finds_no_fault_with_the_unit() {
    if !has("systemd-analyze") {
        return;
    }
    let rights = ["RestrictNamespaces=~net ", "ProtectKernelTunables= ", "CapabilityBoundingSet=~CAP_SYS_ADMIN "];
    for (drop_ins, mark) in [(&[][..], "✓"), (&["conf/systemd/routing-linux.conf"], "✗")] {
        let (level, text) = analysis(drop_ins);
        assert!(level < 3.0, "of 10: {text}");
        for right in rights {
            let line = text.lines().find(|line| line.contains(right)).unwrap_or_else(|| panic!("no {right}: {text}"));
            assert!(line.starts_with(mark), "with {drop_ins:?}: {line}");
        }
    }
}

/// Units of this package below a root, beside those of this machine, so that the units they name exist. A stand-in
/// replaces each program.
#[track_caller]
fn units(drop_ins: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path();
    let put = |mode: &str, from: &Path, to: &str| {
        output(Command::new("install").args(["-D", "-m", mode]).arg(from).arg(root.join(to)));
    };
    for program in ["usr/bin/holdfast", "usr/bin/nsenter", "usr/sbin/dnsmasq", "usr/lib/frr/frrinit.sh", "bin/kill"] {
        put("0755", Path::new("/bin/true"), program);
    }
    for unit in ["holdfast.service", "dhcp-relay.service"] {
        put("0644", &repository("conf/systemd").join(unit), &format!("lib/systemd/system/{unit}"));
    }
    put("0644", &repository("conf/systemd/frr-tor.conf"), "lib/systemd/system/frr@tor.service.d/holdfast.conf");
    for drop_in in drop_ins {
        let name = Path::new(drop_in).file_name().expect("a file").display().to_string();
        put("0644", &repository(drop_in), &format!("lib/systemd/system/holdfast.service.d/{name}"));
    }
    for place in ["/lib/systemd/system", "/usr/lib/systemd/system"] {
        if Path::new(place).join("sysinit.target").exists() {
            output(
                Command::new("cp")
                    .args(["-an", &format!("{place}/."), "."])
                    .current_dir(root.join("lib/systemd/system")),
            );
        }
    }
    directory
}

/// Returns the faults that systemd finds with a unit and those that it names.
#[track_caller]
fn faults(root: &Path, unit: &str) -> String {
    let mut verify = Command::new("systemd-analyze");
    let verified = output(verify.arg("verify").arg(format!("--root={}", root.display())).args(["--man=no", unit]));
    String::from_utf8_lossy(&verified.stderr).into_owned()
}

/// FRR and the DHCP relay start after the switch, in its namespace.
#[test]
fn systemd_finds_no_fault_with_the_units_of_routing_daemons() {
    if !has("systemd-analyze") || !has("/usr/lib/frr/frrinit.sh") {
        return;
    }
    let directory = units(&["conf/systemd/routing-linux.conf"]);
    for unit in ["frr@tor.service", "dhcp-relay.service"] {
        let said = faults(directory.path(), unit);
        assert!(!["holdfast", "frr@tor", "relay", "cycle"].iter().any(|word| said.contains(word)), "{unit}: {said}");
    }
    // systemd reads the drop-in: a unit that it does not have is a fault.
    let drop_in = directory.path().join("lib/systemd/system/frr@tor.service.d/holdfast.conf");
    let text = fs::read_to_string(&drop_in).expect("the drop-in");
    fs::write(&drop_in, text.replace("Wants=holdfast", "Requires=no-such-unit")).expect("an own file");
    let mut verify = Command::new("systemd-analyze");
    verify.arg("verify").arg(format!("--root={}", directory.path().display())).args(["--man=no", "frr@tor.service"]);
    let ended = verify.output().expect("a program");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("no-such-unit"), "{ended:?}");
}

/// Checks the unit with drop-ins. Returns systemd's level of exposure, and its table: a cross marks what the unit may
/// do.
#[track_caller]
fn analysis(drop_ins: &[&str]) -> (f32, String) {
    let directory = units(drop_ins);
    let root = directory.path();
    let said = faults(root, "holdfast.service");
    assert!(!said.contains("holdfast") && !said.contains("routing-linux"), "{said}");

    let mut security = Command::new("systemd-analyze");
    let text = text(
        // Its marks are letters of UTF-8.
        security
            .env("LC_ALL", "C.UTF-8")
            .args(["security", "--offline=true"])
            .arg(format!("--root={}", root.display()))
            .arg("holdfast.service"),
    );
    let level = text.lines().find(|line| line.contains("Overall exposure level")).expect("a verdict");
    (level.split_whitespace().find_map(|word| word.parse().ok()).expect("a number"), text)
}

/// The options and variables of the unit exist in the program.
#[test]
fn unit_options_and_variables_exist_in_the_program() {
    let unit = fs::read_to_string(repository("conf/systemd/holdfast.service")).expect("the unit");
    let lines: Vec<&str> = unit.lines().collect();
    for line in ["Type=notify", "NotifyAccess=main", "EnvironmentFile=-/etc/default/holdfast", "User=holdfast"]
        .into_iter()
        .chain(["StandardError=journal", "SyslogLevelPrefix=yes"])
    {
        assert!(lines.contains(&line), "{line}");
    }
    let start = lines.iter().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/holdfast ")).expect("a command");
    let words: Vec<&str> = start.split_whitespace().collect();
    let help = text(Command::new(env!("CARGO_BIN_EXE_holdfast")).args([words[0], "--help"]));
    for option in words.iter().filter(|word| word.starts_with("--")) {
        assert!(help.contains(&format!("{option} ")), "{option}");
    }
    // The variables of the environment file are used by the unit and documented beside it.
    let defaults = fs::read_to_string(repository("conf/systemd/holdfast.default")).expect("the defaults");
    for variable in ["HOLDFAST_CONFIG", "HOLDFAST_ARGS"] {
        assert!(start.contains(variable) && defaults.contains(&format!("#{variable}=")), "{variable}");
    }
}

#[test]
fn docker_configurations_pass_check_without_warnings() {
    for file in ["tor", "hosts"] {
        let path = repository(&format!("docker/conf/{file}.yaml"));
        let checked = output(Command::new(env!("CARGO_BIN_EXE_holdfast")).arg("check").arg(&path));
        assert_eq!(String::from_utf8_lossy(&checked.stderr), "", "{file}");
        assert!(!String::from_utf8_lossy(&checked.stdout).contains("warning"), "{file}: {checked:?}");
    }
}

/// Writes `tools` and runs perf/build-simulator with them instead of the compiler's. Returns its end and what they
/// noted.
fn built_simulator(tools: &[(&str, &str)]) -> (Output, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    for (name, text) in tools {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), format!("#!/bin/sh\nset -e\ntop={}\n{text}", directory.path().display())).unwrap();
        fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(repository("perf/build-simulator"));
    command.arg(path("out")).env("PATH", format!("{}:/usr/bin:/bin", path("bin").display()));
    let output = command.env_remove("RUSTFLAGS").output().unwrap();
    let notes = fs::read_to_string(path("notes")).unwrap_or_default();
    (output, notes.replace(directory.path().to_str().unwrap(), "TOP"))
}

const RUSTC: (&str, &str) =
    ("bin/rustc", "case $* in -vV) echo host: here;; '--print sysroot') echo $top/root;; *) exit 1;; esac\n");
const RUSTUP: (&str, &str) = ("bin/rustup", "echo rustup $* >>$top/notes\n");
/// Builds a program that notes scenarios, which must exist, and writes counts if it is one that counts.
const CARGO: (&str, &str) = (
    "bin/cargo",
    r#"echo cargo$RUSTFLAGS >>$top/notes
program=$CARGO_TARGET_DIR/here/release/holdfast
mkdir -p $(dirname $program)
counts=$(echo $RUSTFLAGS | sed -n 's/.*generate=//p')
cat >$program <<END
#!/bin/sh
case \$2 in *.yaml) test -f \$2 || exit 1;; esac
mkdir -p $counts
echo ran \$2 >>$top/notes
END
chmod +x $program
"#,
);

#[test]
fn simulator_is_built_by_the_counts_of_scenarios() {
    let profdata = ("root/lib/rustlib/here/bin/llvm-profdata", "echo profdata $* >>$top/notes\n");
    let (output, notes) = built_simulator(&[RUSTC, CARGO, RUSTUP, profdata]);
    assert!(output.status.success(), "{output:?} {notes}");
    let notes: Vec<&str> = notes.lines().collect();
    assert_eq!(notes.first(), Some(&"cargo -Cprofile-generate=TOP/out/counts"), "{notes:?}");
    assert!(notes.contains(&"ran conf/sim/workloads.yaml") && notes.contains(&"ran --random"), "{notes:?}");
    let last = ["profdata merge -o TOP/out/profile TOP/out/counts", "cargo -Cprofile-use=TOP/out/profile"];
    assert_eq!(notes[notes.len() - 2..], last);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.ends_with("/out/optimised/here/release/holdfast\n"), "{printed}");
}

#[test]
fn simulator_without_the_profile_tool_names_the_missing_component() {
    let (output, notes) = built_simulator(&[RUSTC, CARGO, RUSTUP]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("install the component llvm-tools"), "{said}");
    assert_eq!(notes, "rustup component add llvm-tools\n");
}
