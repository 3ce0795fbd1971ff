//! Texts that pages show with links, for readers without the pages.

/// A text of Markdown with the words of its links alone.
#[must_use]
pub fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some((before, link)) = remaining.split_once('[') {
        plain += before;
        match link.split_once("](").and_then(|(words, after)| Some((words, after.split_once(')')?.1))) {
            Some((words, after)) if !words.contains('[') => {
                plain += words;
                remaining = after;
            }
            _ => {
                plain.push('[');
                remaining = link;
            }
        }
    }
    plain + remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_becomes_its_words_and_other_brackets_stay() {
        let cases = [
            ("PFC [mode](pfc.md#modes).", "PFC mode."),
            ("with [`pfc: queue`](pfc.md) and [a](b)", "with `pfc: queue` and a"),
            ("`[{\"lose\": \"p1\"}]` as [keys](f.md)", "`[{\"lose\": \"p1\"}]` as keys"),
            ("a [b] (c)", "a [b] (c)"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_links(text), expected);
        }
    }
}
