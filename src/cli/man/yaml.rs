//! The manual page `holdfast.yaml(5)`, from the texts of the keys.

use clap_mangen::roff::{Inline, Roff, bold, roman};
use holdfast::config::keys::{Key, Section, sections};

const DESCRIPTION: &str = "`holdfast run` and `holdfast reload` apply a YAML file, and `holdfast check` validates it. \
    Only `ports` is required. An unknown key is an error. A key without a value counts as absent. Anchors and merge \
    keys (`<<: *port`) work. The pages in docs of the sources explain each subject; a name such as nics.md is one of \
    them.";

/// Kinds of values, each with spellings.
const VALUES: [(&str, &str); 10] = [
    ("rate", "`100M` `25G` `1T` `400Gb/s`"),
    ("size", "`4096` `96KiB` `12MiB` `1GiB` (powers of two), `100kB` `1MB` (powers of ten)"),
    ("length", "`50cm` `3m` `10km`"),
    ("time", "`500ns` `20us` `200ms` `10s` `5min` `1h`"),
    ("alpha", "`1/128` `1/64` ... `1/2` `1` `2` `4` `8`"),
    ("rate of packets", "`500pps` `10kpps` `1Mpps`"),
    ("probability", "`5%` `0.5%`"),
    ("share", "`1/4` `25%`"),
    ("DSCP, PCP, VLAN", "`26`, `24-31`"),
    ("MAC address", "`02:48:46:00:00:01`"),
];

const COPIES: &str = "`count` copies an item of a list. Each `*` in its values becomes the number of the copy, from 1 \
    or from `first`: `{name: p*, count: 32, device: ring, speed: 100G}`.";

const FILES: [(&str, &str); 3] = [
    ("/etc/holdfast/switch.yaml", "configuration of the service"),
    ("/etc/default/holdfast", "path of another configuration (`HOLDFAST_CONFIG`), and options of the service"),
    ("/usr/share/doc/holdfast/examples", "examples"),
];

/// The page as roff.
pub fn page() -> String {
    let mut page = Roff::new();
    // An empty date, written in quotes.
    page.control("TH", ["holdfast.yaml", "5", "\"\"", concat!("holdfast ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]).text([roman("holdfast.yaml - configuration of a Holdfast switch")]);
    page.control("SH", ["DESCRIPTION"]).text(inlines(DESCRIPTION));
    page.control("SH", ["VALUES"]);
    for (kind, spellings) in VALUES {
        item(&mut page, roman(kind), [spellings]);
    }
    page.control("PP", []).text(inlines(COPIES));
    page.control("SH", ["KEYS"]);
    for section in sections() {
        keys(&mut page, &section);
    }
    page.control("SH", ["FILES"]);
    for (path, text) in FILES {
        item(&mut page, bold(path), [text]);
    }
    let others =
        ["holdfast-check", "holdfast-reload", "holdfast-run"].map(|name| [roman(", "), bold(name), roman("(1)")]);
    let others = others.into_iter().flatten();
    page.control("SH", ["SEE ALSO"])
        .text([bold("holdfast"), roman("(1)")].into_iter().chain(others).collect::<Vec<_>>());
    page.render()
}

fn keys(page: &mut Roff, section: &Section) {
    page.control("SS", [if section.path.is_empty() { "Top level" } else { section.path }]);
    for key in section.keys {
        let texts = [key.meaning.to_owned(), default(key), labelled("values", key.range)];
        let lines: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        item(page, bold(key.name), if lines.is_empty() { vec!["a mapping; its keys are below"] } else { lines });
    }
}

/// The default of a key, which may depend on the kind of a class, or that the key is required.
fn default(key: &Key) -> String {
    match key.lossless_default {
        None if key.default.starts_with("required") => key.default.to_owned(),
        Some(lossless) if lossless != key.default => {
            let texts = [labelled("default, lossy", key.default), labelled("default, lossless", lossless)];
            texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
        }
        _ => labelled("default", key.default),
    }
}

/// The text behind its label; empty without a text.
fn labelled(label: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{label}: {text}") }
}

/// Adds an indented paragraph of `lines` under a tag.
fn item<'a>(page: &mut Roff, tag: Inline, lines: impl IntoIterator<Item = &'a str>) {
    page.control("TP", []).text([tag]);
    for (index, line) in lines.into_iter().enumerate() {
        if index > 0 {
            page.control("br", []);
        }
        page.text(inlines(line));
    }
}

/// Markdown as roff: links leave their text, and words in backquotes are bold.
fn inlines(markdown: &str) -> Vec<Inline> {
    let plain = without_links(markdown);
    let parts = plain.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(index, part)| if index % 2 == 1 { bold(part) } else { roman(part) }).collect()
}

fn without_links(markdown: &str) -> String {
    let (mut plain, mut rest) = (String::new(), markdown);
    while let Some((before, link)) = rest.split_once("](") {
        let mut open = 1;
        let text = before.rfind(|c| {
            open += i32::from(c == ']') - i32::from(c == '[');
            open == 0
        });
        let after = link.find(')');
        let (Some(text), Some(after)) = (text, after) else { break };
        plain.extend([&before[..text], &before[text + 1..]]);
        rest = &link[after + 1..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_leave_their_text_and_backquotes_become_bold() {
        assert_eq!(
            inlines("[mode](pfc.md#modes) of [`a[0]`](x.md), `b`"),
            [roman("mode of "), bold("a[0]"), roman(", "), bold("b")]
        );
        assert_eq!(inlines("a list `[10, 20]`"), [roman("a list "), bold("[10, 20]")]);
    }
}
