//! Checks that each block of shell commands on a page is run by a test, or says why not. A comment above the block
//! names the test:
//!
//! - `<!-- commands: run by FILE -->`: FILE runs them, or the same commands with other arguments, and names the page.
//! - `<!-- commands: not run, REASON -->`.
//!
//! `tests/sim_docs` compares its pages to the byte, so their blocks need no comment.

mod blocks;

use std::fs;

use blocks::{Block, blocks, blocks_of, repository};

/// The test that compares whole pages.
const COMPARED: &str = "tests/sim_docs/main.rs";

/// Whether `tests/sim_docs` compares `page`.
fn is_compared(page: &str) -> bool {
    let test = fs::read_to_string(repository(COMPARED)).expect("the test of the pages of the simulator");
    page.starts_with("docs/sim/") && page != "docs/sim/README.md" || test.contains(&format!("\"{page}\""))
}

/// Returns the mistake in the comment above `block`.
fn mistake(block: &Block) -> Option<String> {
    let Some(mark) = &block.mark else {
        return (!is_compared(&block.page)).then(|| "has no `<!-- commands: ... -->` on the line above it".to_owned());
    };
    if let Some(reason) = mark.strip_prefix("not run, ") {
        return (reason.split(' ').count() < 2).then(|| format!("`{reason}` is not a reason"));
    }
    let Some(file) = mark.strip_prefix("run by ") else {
        return Some(format!("`{mark}` is neither `run by FILE` nor `not run, REASON`"));
    };
    match fs::read_to_string(repository(file)) {
        Err(error) => Some(format!("is run by {file}: {error}")),
        Ok(text) if !text.contains(&block.page) => {
            Some(format!("is run by {file}, which does not name {}", block.page))
        }
        Ok(_) => None,
    }
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let blocks = blocks();
    assert!(blocks.len() > 50, "{} blocks", blocks.len());
    let with = |block: &Block| mistake(block).map(|what| format!("{}:{}: the block {what}", block.page, block.line));
    let mistakes: Vec<String> = blocks.iter().filter_map(with).collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn wrong_mark_of_a_command_block_is_reported() {
    let of = |mark: &str| {
        let blocks = blocks_of("docs/x.md", &format!("text\n{mark}\n```sh\nmake run\n```\n"));
        assert_eq!(blocks[0].commands, ["make run"]);
        mistake(&blocks[0])
    };
    assert_eq!(of("<!-- commands: not run, they need Docker -->"), None);
    assert!(of("").is_some_and(|what| what.contains("no `<!-- commands")));
    assert!(of("<!-- commands: run by tests/none.rs -->").is_some());
    assert!(of("<!-- commands: run by tests/pages/main.rs -->").is_none(), "this file names docs/x.md");
    assert!(of("<!-- commands: run by Makefile -->").is_some_and(|what| what.contains("does not name")));
    assert!(of("<!-- commands: later -->").is_some());
}

#[test]
fn output_and_prompts_are_no_commands() {
    let text = "```\n$ holdfast check\nok\n```\n\n```yaml\na: b\n```\n";
    let blocks = blocks_of("a.md", text);
    assert_eq!(blocks.len(), 1);
    assert_eq!((blocks[0].line, &blocks[0].commands[..]), (1, &["holdfast check".to_owned()][..]));
}
