//! The API: requests to a running switch over a Unix socket, in HTTP/1.1 and JSON.
//!
//! [`operations`] lists the requests and [`model`] defines the answers; [`openapi`] describes both. [`server`] serves
//! them at [`socket`], and [`client`] sends requests. The server runs in the control thread and reads counters without
//! locks, so the API does not affect the packet path.
//!
//! # Example
//!
//! ```no_run
//! use std::path::PathBuf;
//!
//! use holdfast_observe::api::client::Client;
//! use holdfast_config::config::Socket;
//!
//! let client = Client::new(&Socket::At(PathBuf::from("/run/holdfast/holdfast.sock")))?;
//! for port in client.state()?.ports {
//!     println!("{}: {} frames", port.port, port.received_frames);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
pub mod client;
pub mod configs;
pub mod events;
mod faults;
mod fdb;
pub mod history;
pub mod model;
pub mod openapi;
pub mod operations;
pub mod reloads;
pub mod roles;
pub mod routing;
pub mod server;
pub mod socket;

pub use client::Client;
pub use events::EventLog;
pub use history::History;
pub use model::{Look, State};
pub use reloads::Reloads;
pub use roles::Roles;
pub use server::Served;
pub use socket::{Socket, SocketError};
