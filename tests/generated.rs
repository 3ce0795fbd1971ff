//! Shell completions and manual pages, which the program generates from its command line.

use std::collections::BTreeSet;
use std::fs;

use assert_cmd::Command;
use holdfast::config::keys::sections;

fn holdfast(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(args).output().expect("it starts");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = holdfast(&["--help"]);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Continuation lines of a description have a deeper indentation.
    let names = list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Returns the long options of a command.
fn options(command: &str) -> BTreeSet<String> {
    let help = holdfast(&[command, "--help"]);
    let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.len() > 3 && word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_their_options() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = directory.path().join("holdfast");
    fs::write(&script, holdfast(&["completions", "bash"])).expect("the script written");
    let complete = |words: &str| {
        let ask = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _holdfast holdfast \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("there is bash");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("holdfast hea"), "headroom\n");
    assert_eq!(complete("holdfast run --fail"), "--fail-on-loss\n");
    assert_eq!(complete("holdfast run --headroom sh"), "shared-pool\n");
}

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = holdfast(&["completions", shell]);
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page_with_all_its_options() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pages = directory.path().join("man1");
    holdfast(&["man", pages.to_str().expect("a plain path")]);
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let whole = page("holdfast.1");
    let commands = commands();
    assert!(commands.len() > 6, "{commands:?}");
    for command in commands.iter().filter(|command| *command != "help") {
        // In roff a literal hyphen is written with a backslash.
        assert!(whole.contains(&format!("holdfast\\-{}(1)", command.replace('-', "\\-"))), "{command}");
        let text = page(&format!("holdfast-{command}.1")).replace('\\', "");
        assert!(text.contains(".TH "), "{command}");
        for option in options(command) {
            assert!(text.contains(&option), "{command}: no {option}");
        }
    }
}

#[test]
fn manual_page_of_the_configuration_has_every_key_as_plain_text() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    holdfast(&["man", directory.path().to_str().expect("a plain path")]);
    let page = |name: &str| fs::read_to_string(directory.path().join(name)).expect("a page");
    let text = page("holdfast.yaml.5").replace('\\', "");
    for section in sections() {
        let heading = if section.path.is_empty() { "\"Top level\"" } else { section.path };
        let (_, keys) = text.split_once(&format!("\n.SS {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
        let keys = keys.split("\n.S").next().unwrap_or_default();
        for key in section.keys {
            assert!(keys.contains(&format!(".TP\nfB{}fR\n", key.name)), "{heading}: {}", key.name);
        }
    }
    assert!(!text.contains('`') && !text.contains("]("), "Markdown is left: {text}");
    assert!(page("holdfast-run.1").ends_with(".SH \"SEE ALSO\"\n.BR holdfast.yaml (5)\n"));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_holdfast")).args(["man", "/proc/nothing"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: manual pages cannot be written to /proc/nothing"), "{error}");
}

#[test]
fn version_names_the_build_and_the_form_of_the_packet_path() {
    let version = holdfast(&["--version"]);
    assert!(version.starts_with(&format!("holdfast {}", env!("CARGO_PKG_VERSION"))), "{version}");
    let form = version.lines().find_map(|line| line.strip_prefix("packet path: "));
    assert_eq!(form, Some(holdfast::isa::Isa::detect().to_string().as_str()), "{version}");
    for fact in holdfast::build::table().lines() {
        assert!(version.lines().any(|line| line == fact), "{fact}: {version}");
    }
    assert_eq!(holdfast(&["-V"]).lines().count(), 1, "one line for scripts");
}
