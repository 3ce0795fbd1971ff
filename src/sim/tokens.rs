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
