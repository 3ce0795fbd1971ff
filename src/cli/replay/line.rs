//! Reads the lines of a trace one at a time, and splits them into fields with their columns.

use std::io::{BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

use super::trace::Fault;

/// The columns of CSV and the fields of JSON lines, in this order. The last one is optional.
pub const FIELDS: [&str; 7] = ["time_ns", "event", "port", "class", "bytes", "egress", "ecn"];
pub const HEADER: &str = "time_ns,event,port,class,bytes,egress";
pub const HEADER_ECN: &str = "time_ns,event,port,class,bytes,egress,ecn";

/// The fields of a line, indexed as [`FIELDS`].
pub type Fields = [Field; FIELDS.len()];

/// Maximum length of a line in bytes. An event with two port names, three numbers and seven keys is far shorter.
const LONGEST_LINE: u64 = 4096;

/// A field as written; the text is empty if the field is blank.
#[derive(Debug, Clone, Default)]
pub struct Field {
    pub text: String,
    pub column: u64,
}

/// Reads lines in bounded memory.
pub struct Lines<R> {
    input: R,
    pub number: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input, number: 0 }
    }

    /// The next line that is neither blank nor a comment, without its line end.
    pub fn next(&mut self) -> Result<Option<String>, Fault> {
        loop {
            let mut bytes = Vec::new();
            let read = self.input.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes);
            self.number += 1;
            let fault = |column, text: String| Fault { line: self.number, column, text };
            read.map_err(|error| {
                let text = error.to_string();
                let reason = text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason);
                fault(1, format!("cannot be read: {reason}; check the file"))
            })?;
            if bytes.is_empty() {
                return Ok(None);
            }
            if bytes.len() as u64 > LONGEST_LINE {
                let text = format!("the line is longer than {LONGEST_LINE} bytes; write one event per line");
                return Err(fault(LONGEST_LINE + 1, text));
            }
            let text = String::from_utf8(bytes).map_err(|error| {
                let valid = error.utf8_error().valid_up_to();
                let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).chars().count() as u64;
                fault(1 + before, "not UTF-8 text; save the file as UTF-8".to_owned())
            })?;
            let line = text.strip_suffix('\n').unwrap_or(&text);
            let line = line.strip_suffix('\r').unwrap_or(line);
            // Spreadsheets begin UTF-8 files with a byte order mark.
            let line = if self.number == 1 { line.trim_start_matches('\u{feff}') } else { line };
            if !line.trim().is_empty() && !line.starts_with('#') {
                return Ok(Some(line.to_owned()));
            }
        }
    }
}

/// Splits a line of CSV under `header`. The error is a column and a reason, if the number of fields is wrong.
pub fn split_csv(line: &str, header: &str) -> Result<Fields, (u64, String)> {
    let mut fields = Fields::default();
    let most = header.split(',').count();
    let (mut column, mut count) = (1, 0);
    for text in line.split(',') {
        if count == most {
            return Err((column, format!("more than {most} columns; write `{header}`")));
        }
        let blank = text.chars().take_while(|c| c.is_whitespace()).count() as u64;
        fields[count] = Field { text: text.trim().to_owned(), column: column + blank };
        column += text.chars().count() as u64 + 1;
        count += 1;
    }
    if count < most {
        return Err((column - 1, format!("column `{}` is missing; write `{header}`", FIELDS[count])));
    }
    Ok(fields)
}

/// An event in JSON; a missing field is `None`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    time_ns: Option<Value>,
    event: Option<Value>,
    port: Option<Value>,
    class: Option<Value>,
    bytes: Option<Value>,
    egress: Option<Value>,
    ecn: Option<Value>,
}

/// Splits a line of JSON into fields; the column of each is that of its key.
pub fn split_json(line: &str) -> Result<Fields, (u64, String)> {
    let object: Object = serde_json::from_str(line).map_err(|error| {
        let text = error.to_string();
        let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned();
        let example = "write e.g. {\"time_ns\": 0, \"event\": \"depart\", \"class\": 3, \"egress\": \"p2\"}";
        (error.column().max(1) as u64, format!("not an event: {reason}; {example}"))
    })?;
    let Object { time_ns, event, port, class, bytes, egress, ecn } = object;
    let values = [time_ns, event, port, class, bytes, egress, ecn];
    let mut fields = Fields::default();
    for ((field, value), name) in fields.iter_mut().zip(values).zip(FIELDS) {
        field.column = column_of(line, name);
        field.text = match value {
            None => String::new(),
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => {
                return Err((field.column, format!("`{name}` is neither a text nor a number; write one of the two")));
            }
        };
    }
    Ok(fields)
}

fn column_of(line: &str, name: &str) -> u64 {
    let key = format!("\"{name}\"");
    let is_key = |at: &usize| line[at + key.len()..].trim_start().starts_with(':');
    let at = line.match_indices(&key).map(|(at, _)| at).find(is_key);
    at.map_or(1, |at| 1 + line[..at].chars().count() as u64)
}
