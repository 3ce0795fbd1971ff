//! Writers of sessions that a reload has ended. Their threads end when they have written the copies that wait, which a
//! disk that hangs delays.

use super::writer::FileWriter;
use crate::units::Nanos;

/// Most threads of writers: twice the mirrors of a switch. Reloads beside a disk that hangs start no more.
const MOST_THREADS: usize = 16;

/// Writers whose threads have not ended yet.
#[derive(Debug, Default)]
pub struct Retired(Vec<FileWriter>);

impl Retired {
    /// Ends the thread of `writer` after the copies that wait. Those of a writer without a thread are lost.
    pub fn push(&mut self, writer: FileWriter) {
        writer.close();
        if writer.is_started() {
            self.0.push(writer);
        }
    }

    /// The writers whose threads have not ended.
    pub fn iter(&self) -> impl Iterator<Item = &FileWriter> {
        self.0.iter()
    }

    /// Starts the threads of `writers` that have none. One that shares a path with a writer here waits for its end, so
    /// that no path has two writers.
    pub fn start<'a>(&mut self, writers: impl Iterator<Item = &'a mut FileWriter>, now: Nanos) {
        self.0.retain(|writer| !writer.has_ended());
        let (mut started, mut waiting) = (self.0.len(), Vec::new());
        for writer in writers {
            if writer.is_started() {
                started += 1;
            } else if !self.0.iter().any(|before| before.config().shares_path(writer.config())) {
                waiting.push(writer);
            }
        }
        waiting.into_iter().take(MOST_THREADS.saturating_sub(started)).for_each(|writer| writer.start(now));
    }
}
