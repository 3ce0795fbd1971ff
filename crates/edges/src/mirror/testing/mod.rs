//! Support for tests of captures, also those of other crates: files that hang, and a reader of pcapng.

pub mod hanging;
pub mod pcapng_reader;
