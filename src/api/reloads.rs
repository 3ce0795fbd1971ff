//! Requests to read the configuration again, on their way to who can.

use tokio::sync::{mpsc, oneshot};

use super::model::Reload;

/// One request.
#[derive(Debug)]
pub struct Ask {
    /// Whether what differs is to be applied, and not only told.
    pub apply: bool,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Reload>,
}

/// The end that asks.
#[derive(Debug, Clone)]
pub struct Reloads(mpsc::Sender<Ask>);

impl Reloads {
    /// Both ends. One request waits at a time.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (asks, asked) = mpsc::channel(1);
        (Self(asks), asked)
    }

    /// Asks; `None` if nobody answers any more.
    pub async fn ask(&self, apply: bool) -> Option<Reload> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask { apply, answer }).await.ok()?;
        answered.await.ok()
    }
}
