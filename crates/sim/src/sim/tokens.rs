//! Words of an input file, with their places.

use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::config::error::{ConfigError, ConfigErrors, Place};

/// A word and its place.
#[derive(Debug, Clone, Copy)]
pub struct Word<'a> {
    pub text: &'a str,
    pub place: Place,
}

/// The words of a text that are still to be read.
#[derive(Debug)]
pub struct Words<'a> {
    source: &'a str,
    words: std::vec::IntoIter<Word<'a>>,
    /// Place of the last word, for the error that one is missing.
    last: Place,
}

impl<'a> Words<'a> {
    /// Returns the words of the lines `text` of `source`, the first of which has the number `line`.
    pub fn new(source: &'a str, text: &'a str, line: u64) -> Self {
        // Editors of some systems begin UTF-8 files with a byte order mark.
        let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let mut words = Vec::new();
        for (number, text) in text.lines().enumerate() {
            for word in text.split_whitespace() {
                let column = word.as_ptr().addr() - text.as_ptr().addr();
                words.push(Word { text: word, place: Place { line: line + number as u64, column: column as u64 + 1 } });
            }
        }
        let last = words.last().map_or(Place { line, column: 1 }, |word| word.place);
        Self { source, words: words.into_iter(), last }
    }

    /// Takes the words of the next line as `what`, which has as many words as `format`.
    pub fn record(&mut self, what: &str, format: &str) -> Result<Self, ConfigErrors> {
        let first = self.word(what)?;
        let is_beside = |word: &&Word<'_>| word.place.line == first.place.line;
        let (found, expected) =
            (1 + self.words.as_slice().iter().take_while(is_beside).count(), format.split(' ').count());
        if found != expected {
            let message = format!("{what} has {expected} words, not {found}; write `{format}` on a line of its own");
            return Err(self.error(first.place, message));
        }
        let words: Vec<Word<'_>> = [first].into_iter().chain(self.words.by_ref().take(expected - 1)).collect();
        let last = words.last().map_or(first.place, |word| word.place);
        Ok(Self { source: self.source, words: words.into_iter(), last })
    }

    /// Checks that no word is left behind those of `what`.
    pub fn end(&mut self, what: &str) -> Result<(), ConfigErrors> {
        match self.next() {
            None => Ok(()),
            Some(word) => {
                let message =
                    format!("`{}` is one word too many for {what}; remove it, or correct the words before", word.text);
                Err(self.error(word.place, message))
            }
        }
    }

    /// Place of the next word, or of the last one.
    pub fn place(&self) -> Place {
        self.words.as_slice().first().map_or(self.last, |word| word.place)
    }

    /// Takes the next word, if there is one.
    pub fn next(&mut self) -> Option<Word<'a>> {
        self.words.next()
    }

    /// Takes the next word as `what`.
    pub fn take<T: FromStr>(&mut self, what: &str) -> Result<T, ConfigErrors> {
        let word = self.word(what)?;
        word.text.parse().map_err(|_| self.error(word.place, format!("`{}` is not {what}; write {what}", word.text)))
    }

    /// Takes the next word as a whole number within `range`.
    pub fn within(&mut self, what: &str, range: RangeInclusive<u64>) -> Result<u64, ConfigErrors> {
        let word = self.word(what)?;
        word.text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.error(word.place, format!("`{}` is not {what}; write from {least} to {most}", word.text))
        })
    }

    /// Takes the next word as a decimal number within `range`.
    pub fn decimal(&mut self, what: &str, range: RangeInclusive<f64>) -> Result<f64, ConfigErrors> {
        let word = self.word(what)?;
        word.text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.error(word.place, format!("`{}` is not {what}; write from {least} to {most}", word.text))
        })
    }

    /// Takes the next word as it is.
    pub fn word(&mut self, what: &str) -> Result<Word<'a>, ConfigErrors> {
        self.next().ok_or_else(|| self.error(self.last, format!("{what} is missing; write it behind this word")))
    }

    /// Returns an error at `place`.
    pub fn error(&self, place: Place, message: impl Into<String>) -> ConfigErrors {
        let (source, path) = (self.source.to_owned(), String::new());
        ConfigErrors::new(vec![ConfigError { source, place: Some(place), path, message: message.into() }])
    }
}
