//! Channel for orders that change the configuration.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::model::Reload;

/// The configuration that an order wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// That of the file of the switch, as it is now.
    File,
    /// A text.
    Text(Given),
    /// The configuration of the history with this number.
    Past(u64),
    /// The configuration before the running one.
    Before,
}

/// A text of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The file it comes from, or words for it, in errors and in the history.
    pub source: String,
    /// The configuration.
    pub text: Arc<str>,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// To list what differs from the wanted configuration.
    Compare(Wanted),
    /// To run by the wanted configuration.
    Apply {
        /// The configuration.
        wanted: Wanted,
        /// The time in which a confirmation must come, or the configuration before comes back; `None`: none is needed.
        confirm_within: Option<Duration>,
    },
    /// To stay with the configuration that waits for its confirmation.
    Confirm,
}

/// One order, and who waits for the answer.
#[derive(Debug)]
pub struct Ask {
    /// The order.
    pub order: Order,
    /// The name of the user; empty: unknown.
    pub user: String,
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

    /// Sends an order and waits for the answer; `None` if the receiver has ended.
    pub async fn ask(&self, order: Order, user: String) -> Option<Reload> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask { order, user, answer }).await.ok()?;
        answered.await.ok()
    }
}
