//! Numbers and tables as text for people.
//!
//! # Example
//!
//! ```
//! use holdfast_base::text::format::grouped;
//! use holdfast_base::text::table::Table;
//!
//! let mut table = Table::new("port | >frames");
//! table.row(["p1".to_owned(), grouped(1_234_567)]);
//! assert_eq!(table.to_string(), "port     frames\np1    1,234,567\n");
//! ```

pub mod format;
pub mod table;
pub mod time;
