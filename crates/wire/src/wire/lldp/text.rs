//! Text of peers, made safe for terminals, JSON and labels of metrics.

use std::fmt;

use super::MOST_STRING;

/// A text without control characters, in valid UTF-8.
///
/// A control or formatting character becomes `\x1b` or `\u{202e}`, a byte that is no UTF-8 `\xff`. A text of a peer
/// has at most 255 bytes on the wire, and so at most 1,020 here.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// Creates a text to send, cut to the 255 bytes that a TLV can hold.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut safe = String::new();
        text.chars().for_each(|character| push(&mut safe, character));
        safe.truncate(cut(&safe));
        Self(safe)
    }

    /// Reads the bytes of a peer. Trailing zeros are dropped, because some senders end strings with one.
    #[must_use]
    pub fn from_wire(bytes: &[u8]) -> Self {
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let mut safe = String::new();
        for chunk in bytes[..end].utf8_chunks() {
            chunk.valid().chars().for_each(|character| push(&mut safe, character));
            for &byte in chunk.invalid() {
                push_byte(&mut safe, byte);
            }
        }
        Self(safe)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes to send, at most 255.
    #[must_use]
    pub fn to_wire(&self) -> &[u8] {
        &self.0.as_bytes()[..cut(&self.0)]
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The length of the longest prefix of whole characters that fits a TLV.
fn cut(text: &str) -> usize {
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    ends.take_while(|&end| end <= MOST_STRING).last().unwrap_or(0)
}

fn push(safe: &mut String, character: char) {
    if !is_unsafe(character) {
        safe.push(character);
    } else if let Ok(byte) = u8::try_from(character) {
        push_byte(safe, byte);
    } else {
        safe.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
    }
}

fn push_byte(safe: &mut String, byte: u8) {
    safe.push_str(&format!("\\x{byte:02x}"));
}

/// Whether a character acts on a terminal or hides: controls, line separators, marks of writing direction, invisible
/// characters.
fn is_unsafe(character: char) -> bool {
    let is_invisible = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    character.is_control() || is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_and_invalid_utf8_are_escaped() {
        assert_eq!(Text::from_wire(b"\x1b[2Jsw\n\"1\"\0\0").as_str(), "\\x1b[2Jsw\\x0a\"1\"");
        assert_eq!(Text::from_wire(b"caf\xc3\xa9 \xff\xc3").as_str(), "caf\u{e9} \\xff\\xc3");
        assert_eq!(Text::from_wire("a\u{202e}b\u{9b}1m".as_bytes()).as_str(), "a\\u{202e}b\\x9b1m");
    }

    #[test]
    fn text_to_send_is_cut_between_characters() {
        let text = Text::new(&"\u{e9}".repeat(200));
        assert_eq!((text.to_wire().len(), text.as_str().chars().count()), (254, 127));
    }

    proptest! {
        #[test]
        fn text_of_any_bytes_is_safe_and_bounded(bytes in prop::collection::vec(any::<u8>(), 0..=255)) {
            let text = Text::from_wire(&bytes);
            prop_assert!(!text.as_str().chars().any(is_unsafe));
            prop_assert!(text.as_str().len() <= 4 * 255);
            prop_assert_eq!(Text::from_wire(text.as_str().as_bytes()), text);
        }
    }
}
