//! Limits of the style: comment lines of 120 columns, functions of 70 lines, comments that begin with their subject.

use std::fs;
use std::path::PathBuf;

use crate::arrows::{files, repository};

/// Columns of a line. Longer lines do not fit beside a second file.
const COLUMNS: usize = 120;
/// Lines of a function, so that it fits a screen.
const FUNCTION_LINES: usize = 70;
/// Words with which no comment begins: its first word should be its subject or its verb.
const BANNED: [&str; 12] =
    ["And", "Of", "As", "The same", "Likewise", "What", "Who", "Where", "Whose", "Whoever", "Whatever", "Somebody"];

/// Sources of the project, its tests and benchmarks, with their text.
fn all_sources() -> Vec<(PathBuf, String)> {
    let paths = ["src", "crates", "ffi", "tests", "perf"].map(|folder| files(&repository(folder))).concat();
    let paths = paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source");
        (path, text)
    };
    paths.map(read).collect()
}

/// The text of a comment line, without its slashes.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']).trim_start())
}

/// Comment lines that are too long. rustfmt holds the code to the same width, except strings and the insides of macros.
fn long_lines(text: &str) -> Vec<(usize, String)> {
    let is_long = |line: &str| line.chars().count() > COLUMNS && comment(line).is_some();
    let lines = text.lines().enumerate().filter(|(_, line)| is_long(line));
    lines.map(|(at, line)| (at + 1, format!("{} columns of {COLUMNS}", line.chars().count()))).collect()
}

/// Whether a function begins in `line`, of any visibility: the words before `fn` are its qualifiers.
fn is_function(line: &str) -> bool {
    let after_pub = line.strip_prefix("pub").unwrap_or(line);
    let after_scope = after_pub
        .strip_prefix('(')
        .and_then(|scope| scope.split_once(')'))
        .map_or(after_pub, |(_, remaining)| remaining);
    let qualifiers = after_scope.split_once("fn ").map(|(qualifiers, _)| qualifiers);
    qualifiers.is_some_and(|words| {
        words.split_whitespace().all(|word| ["const", "async", "unsafe", "extern", "\"C\""].contains(&word))
    })
}

/// Functions that are too long, by the indentation that rustfmt gives their last line.
fn long_functions(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if !is_function(line.trim_start()) {
            continue;
        }
        let last = format!("{indent}}}");
        let length =
            lines[start..].iter().position(|line| *line == last || line.trim_end().ends_with("; }")).map(|end| end + 1);
        if let Some(length) = length.filter(|length| *length > FUNCTION_LINES) {
            found.push((start + 1, format!("a function of {length} lines; {FUNCTION_LINES} fit a screen")));
        }
    }
    found
}

/// Functions with a tuple pattern as a parameter, such as `(port, queue): (usize, usize)`: its call has no names.
fn tuple_parameters(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| is_function(line.trim_start()));
    let of = |(start, _): (usize, &&str)| {
        let is_end = |line: &&str| line.ends_with('{') || line.ends_with('}') || line.ends_with(';');
        let end = lines[start..].iter().position(is_end).map_or(lines.len(), |end| start + end + 1);
        // Parameters that stand on the line of the name come after its parenthesis or a comma.
        let signature = lines[start..end].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let is_pattern = |part: &str| {
            let names = part.split_once("): (").map(|(names, _)| names);
            names.is_some_and(|names| {
                names.chars().all(|letter| letter.is_ascii_lowercase() || "_, ()0123456789".contains(letter))
            })
        };
        let mut parts = signature.match_indices('(').map(|(at, _)| &signature[at + 1..]);
        parts.any(is_pattern).then(|| (start + 1, "a tuple pattern as a parameter".to_owned()))
    };
    starts.filter_map(of).collect()
}

/// Comments whose first word is banned; lines that go on with a sentence may begin as they like.
fn banned_words(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut before) = (Vec::new(), None);
    for (at, line) in text.lines().enumerate() {
        let words = comment(line);
        // A paragraph begins after code or after an empty comment line.
        if let (Some(words), None | Some("")) = (words, before) {
            let is_first = |banned: &&&str| {
                words
                    .strip_prefix(**banned)
                    .is_some_and(|remaining| !remaining.starts_with(|next: char| next.is_alphanumeric()))
            };
            found.extend(BANNED.iter().find(is_first).map(|word| (at + 1, format!("a comment begins with `{word}`"))));
        }
        before = words;
    }
    found
}

/// Fails with each finding's file and line.
#[track_caller]
fn check(rule: impl Fn(&str) -> Vec<(usize, String)>) {
    let root = repository("");
    let sources = all_sources();
    assert!(sources.len() > 300, "{} files", sources.len());
    let found = sources.iter().flat_map(|(path, text)| {
        let path = path.strip_prefix(&root).expect("below the repository").display();
        rule(text).into_iter().map(move |(line, finding)| format!("{path}:{line}: {finding}"))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

#[test]
fn comments_have_at_most_120_columns() {
    check(long_lines);
}

#[test]
fn functions_have_at_most_70_lines() {
    check(long_functions);
}

#[test]
fn parameters_have_names() {
    check(tuple_parameters);
}

#[test]
fn comments_begin_with_their_subject() {
    check(banned_words);
}

#[test]
fn style_rules_report_their_violations() {
    let wide = format!("// {}\nlet x = \"{}\";\n", "a".repeat(COLUMNS), "a".repeat(COLUMNS));
    assert_eq!(long_lines(&wide).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1]);
    for head in ["fn f", "pub fn f", "pub(crate) fn f", "pub(in crate::x) const fn f<T>", "unsafe extern \"C\" fn f"] {
        let long =
            |lines: usize| format!("impl X {{\n    {head}(self) {{\n{}    }}\n}}\n", "        g();\n".repeat(lines));
        assert_eq!(long_functions(&long(FUNCTION_LINES - 2)), [], "{head}");
        let found: Vec<usize> = long_functions(&long(FUNCTION_LINES - 1)).iter().map(|(line, _)| *line).collect();
        assert_eq!(found, [2], "{head}");
    }
    assert!(!is_function("// the fn f(x)") && !is_function("let f: fn (u8) = g;"));
    let tuples =
        "fn f((a, b): (u8, u8)) {\n}\nfn g(\n    c: u8,\n    (d, e): (u8, u8),\n) {\n}\nfn h(i: (u8, u8)) {\n}\n";
    assert_eq!(tuple_parameters(tuples).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3]);
    let comments =
        "/// What it does.\nfn f() {}\n/// Returns all\n/// Of them.\n///\n/// As before.\n// Offers more.\n";
    assert_eq!(banned_words(comments).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 6]);
}
