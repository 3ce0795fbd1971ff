//! The switch that a command asks: the same option for all that do.

use holdfast::api::client::ClientError;
use holdfast::api::socket::VARIABLE;
use holdfast::api::{Client, Socket};

use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Asked {
    /// The switch's socket [default: $XDG_RUNTIME_DIR/holdfast.sock, then /run/holdfast/holdfast.sock]
    #[arg(long, value_name = "PATH", env = VARIABLE, hide_env_values = true)]
    socket: Option<Socket>,
}

impl Asked {
    /// A client of it; nothing is asked yet.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.socket.clone().unwrap_or_default())
    }
}

/// What a client says, as a command does.
pub fn failed(error: ClientError) -> Failure {
    Failure::Run(error.to_string())
}
