//! Channel for requests to read the configuration again.

use tokio::sync::{mpsc, oneshot};

use super::model::Reload;

/// One request to read the configuration again.
#[derive(Debug)]
pub struct Ask {
    /// Whether differences are applied, and not only listed.
    pub apply: bool,
    /// The channel for the answer.
    pub answer: oneshot::Sender<Reload>,
}

/// The sending end of the channel.
#[derive(Debug, Clone)]
pub struct Reloads(mpsc::Sender<Ask>);

impl Reloads {
    /// Returns both ends. At most one request waits.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (asks, asked) = mpsc::channel(1);
        (Self(asks), asked)
    }

    /// Sends a request and waits for the answer; `None` if the receiver has ended.
    pub async fn ask(&self, apply: bool) -> Option<Reload> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask { apply, answer }).await.ok()?;
        answered.await.ok()
    }
}
