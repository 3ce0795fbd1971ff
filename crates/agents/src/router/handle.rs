//! Access to a router that runs on its own thread.

use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use super::Router;
use crate::units::Nanos;

/// A request: it runs between two frames.
pub type Request = Box<dyn FnOnce(&mut Router, Nanos) + Send>;

/// Sends requests to the thread of a router.
#[derive(Debug, Clone)]
pub struct RouterHandle(Sender<Request>);

impl RouterHandle {
    /// Creates a handle, and the requests that arrive by it.
    #[must_use]
    pub fn new() -> (Self, Receiver<Request>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// Runs `request` on the router's thread and returns its result; `None` if the thread has ended.
    pub async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut Router, Nanos) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let request = Box::new(move |router: &mut Router, now| {
            // The requester may be gone.
            let _ = answer.send(request(router, now));
        });
        self.0.send(request).ok()?;
        answered.await.ok()
    }

    /// Runs `request` on the router's thread, and waits for nothing.
    pub fn tell(&self, request: impl FnOnce(&mut Router, Nanos) + Send + 'static) {
        // Without the thread there is nothing to do.
        let _ = self.0.send(Box::new(request));
    }
}
