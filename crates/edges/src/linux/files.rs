//! The limit of open files.

use std::io;

/// Files that an asynchronous runtime opens, with some for the work inside it.
const FILES: usize = 16;

/// Returns a runtime for the calling thread. Its library panics where it may open no file.
///
/// # Errors
/// If this process may open too few files, or the runtime does not start.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    has_room(FILES)?;
    tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()
}

/// Whether this process may open `count` more files.
fn has_room(count: usize) -> io::Result<()> {
    (0..count.div_ceil(2)).map(|_| io::pipe()).collect::<Result<Vec<_>, _>>()?;
    Ok(())
}
