//! The API: a running switch asked and told over a Unix socket, HTTP/1.1 and JSON.
//!
//! [`model`] is what it says, [`server`] says it, [`socket`] is where, [`client`] asks. Like all that looks on it runs in
//! the control thread and reads counters that nobody locks: the packet path does not know that it is there.

mod answer;
pub mod client;
pub mod events;
mod fdb;
pub mod model;
pub mod reloads;
pub mod server;
pub mod socket;

pub use client::Client;
pub use events::EventLog;
pub use model::{Look, State};
pub use reloads::Reloads;
pub use server::Served;
pub use socket::{Socket, SocketError};
