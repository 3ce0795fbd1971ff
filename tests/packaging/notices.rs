//! Licences of what is linked into the program, sources that a publisher supplies, and the signature of a release.

use super::*;

/// Writes the notices of a static program. `home` is that of cargo, the usual one without it.
#[cfg(feature = "dpdk")]
fn notices(home: Option<&Path>) -> (tempfile::TempDir, Output) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(repository("packaging/notices"));
    command.arg(directory.path()).arg("static");
    if let Some(home) = home {
        // A cargo of its own: this one lists the crates from the usual home.
        let cargo = home.join("cargo");
        let usual = std::env::var("CARGO_HOME").map_or(String::new(), |home| format!("CARGO_HOME={home}"));
        script(&cargo, &format!("exec env -u CARGO_HOME {usual} {} \"$@\"", env!("CARGO")));
        command.env("CARGO", cargo).env("CARGO_HOME", home);
    }
    let output = command.output().expect("a program");
    (directory, output)
}

/// Every crate and every archive of Debian has a paragraph with its licence, and the file that it names is there.
#[cfg(feature = "dpdk")]
#[test]
fn notices_of_a_static_program_name_each_part_and_have_its_licence() {
    let (directory, written) = notices(None);
    assert!(written.status.success(), "{written:?}");
    let read = |file: &str| fs::read_to_string(directory.path().join(file)).unwrap_or_else(|_| panic!("no {file}"));
    let copyright = read("copyright");
    let crates = read("crates.txt");
    let parts = |function: &str| {
        let script = format!(". packaging/parts; {function}");
        text(Command::new("bash").args(["-euc", &script]).current_dir(repository("")))
    };
    for line in parts("crates").lines() {
        let (name, remaining) = line.split_once('|').expect("a name");
        let (version, _) = remaining.split_once('|').expect("a version");
        assert!(copyright.contains(&format!("crates/{name}-{version}/*\n")), "{name}: {copyright}");
        let headings = crates.lines().filter(|line| line.starts_with("==== "));
        let mut parts = headings.flat_map(|line| line["==== ".len()..].split(", "));
        assert!(parts.any(|part| part == format!("{name} {version}")), "{name}");
    }
    for line in parts("debian").lines() {
        let part: Vec<&str> = line.split('|').collect();
        assert!(copyright.contains(&format!("debian/{}-{}/*\n", part[0], part[1])), "{line}: {copyright}");
        assert!(!read(&format!("debian/{}.txt", part[2])).is_empty());
    }
    for licence in ["GPL-2", "GPL-3", "LGPL-2.1", "LGPL-3"] {
        assert!(!read(&format!("common-licenses/{licence}")).is_empty());
    }
    let sources = read("sources");
    let sources: Vec<&str> = sources.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(sources, ["elfutils", "glibc", "libnl3", "numactl", "xdp-tools"]);
}

/// The crates have no sources in this home of cargo, then sources without a licence file.
#[cfg(feature = "dpdk")]
#[test]
fn crate_without_licence_file_is_an_error_unless_it_may_be_taken_under_apache_2() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let refused = |what: &str| {
        let (_directory, output) = notices(Some(home.path()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(what), "{what}: {output:?}");
    };
    refused("is not there; run `cargo fetch`");
    let list = "set -eu; . packaging/parts; crates | cut -d'|' -f1,2 | tr '|' '-'";
    for name in text(Command::new("bash").args(["-c", list]).current_dir(repository(""))).lines() {
        fs::create_dir_all(home.path().join("registry/src/index").join(name)).unwrap();
    }
    refused(" (MIT) has no licence file");
}

#[test]
fn sources_of_linked_packages_are_fetched_in_their_versions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = format!("{}/bin:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let fetch = |list: &str| {
        let command = format!("printf '{list}' | {} out", repository("packaging/sources").display());
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]).env("PATH", &path).current_dir(directory.path()).output().expect("a shell")
    };
    let said = |output: Output| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    script(&directory.path().join("bin/apt-get"), "[ $1 = source ] && echo \"$@\"");
    assert!(said(fetch("numactl=2\n")).starts_with("error: apt knows no source packages; add deb-src"));
    assert!(said(fetch("")).starts_with("error: no source packages; give the file notices/sources"));
    script(&directory.path().join("bin/apt-get"), "echo \"$@\"");
    let fetched = said(fetch("libnl3=3.7.0-0.2\nnumactl=2.0.16-1\n"));
    assert!(fetched.ends_with("source --quiet --only-source --download-only libnl3=3.7.0-0.2 numactl=2.0.16-1\n"));
}

/// Runs the commands of docs/releases.md that sign and verify, with a key of its own.
#[test]
fn signature_of_the_sums_is_verified_as_the_page_says_and_that_of_other_sums_is_not() {
    if !has("ssh-keygen") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = fs::read_to_string(repository("docs/releases.md")).expect("docs/releases.md");
    let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start}"));
    let run = |command: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-euc", command]).current_dir(directory.path()).output().expect("a shell")
    };
    let must = |command: &str| {
        let output = run(command);
        assert!(output.status.success(), "{command}: {output:?}");
    };
    must("mkdir dist packaging; echo file >dist/holdfast; cd dist; sha256sum holdfast >SHA256SUMS");
    must("ssh-keygen -q -t ed25519 -N '' -f release-key");
    must(
        "echo \"release@holdfast namespaces=\\\"holdfast-release\\\" $(cut -d' ' -f1,2 release-key.pub)\" >packaging/signers",
    );
    must(line("ssh-keygen -Y sign "));
    let verify = line("ssh-keygen -Y verify ");
    must(verify);
    must(line("(cd dist "));
    must("echo other >>dist/SHA256SUMS");
    assert!(!run(verify).status.success());
}
