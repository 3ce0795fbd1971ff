//! Errors that prevent a switch from running, each one sentence that names the cause and the remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::IdleConfig;
use crate::dpdk;
use crate::units::Nanos;

/// An error while starting, running or stopping a switch.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error of DPDK, a pool or an lcore.
    #[error(transparent)]
    Dpdk(#[from] dpdk::Error),
    /// An error of a configured port.
    #[error("port `{port}`: {error}")]
    Port {
        /// Name of the port.
        port: String,
        /// Error of its device.
        error: dpdk::Error,
    },
    /// The socket of a port is configured for an account that does not exist.
    #[error("port `{port}`: this machine has no {key} `{account}` for the socket; write another, or its number")]
    NoAccount {
        /// Name of the port.
        port: String,
        /// `owner` or `group`.
        key: &'static str,
        /// The name.
        account: String,
    },
    /// The access rights of a port's socket cannot be set.
    #[error(
        "port `{port}`: the access rights of {} cannot be set: {}; run as root, or leave out `socket`",
        .path.display(), .error.kind()
    )]
    SocketAccess {
        /// Name of the port.
        port: String,
        /// Path of the socket.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The metrics address cannot be used.
    #[error(
        "metrics cannot be served on {address}: {}; is another holdfast running? \
         choose another address with --metrics ADDRESS, or none with --metrics off",
        .error.kind()
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: io::Error,
    },
    /// The API socket cannot be used.
    #[error(transparent)]
    Api(#[from] crate::api::SocketError),
    /// The runtime or the signals of the control thread cannot be set up.
    #[error("the control thread cannot start: {}; raise the limit of open files (`ulimit -n 1024`, LimitNOFILE= in a unit)", .0)]
    Runtime(io::Error),
    /// The notification socket of systemd cannot be used.
    #[error(
        "NOTIFY_SOCKET is `{socket}`, which cannot be reached: {}; systemd sets it for units of Type=notify, unset it \
         elsewhere",
        .error.kind()
    )]
    Notify {
        /// The socket.
        socket: String,
        /// The cause.
        error: io::Error,
    },
    /// The report could not be written.
    #[error("the report cannot be written: {}; is the disk full?", .0.kind())]
    Output(io::Error),
    /// A virtual host without a link, which the configuration refuses.
    #[error("host `{host}` is on a port that is not an in-process link; give that port `device: ring`")]
    NoLink {
        /// Name of the host.
        host: String,
    },
    /// More ports than the switch can have.
    #[error("{ports} ports are more than the 64 that a switch can have; remove some")]
    TooManyPorts {
        /// Number of configured ports.
        ports: usize,
    },
    /// A PCI device is configured with memory that it cannot use.
    #[error("`eal.memory: nohuge` gives PCI devices no memory that they can use; write `memory: huge` or remove it")]
    PciWithoutHugepages,
    /// No CPU is known that the process may use.
    #[error("the CPUs that this process may use are unknown; set `lcores.control` and `lcores.dataplane`")]
    NoCpu,
    /// A configured CPU that this process may not use.
    #[error("`{key}: {cpu}` is not among the CPUs this process may use ({allowed}); choose one of those")]
    CpuNotAllowed {
        /// The configuration key.
        key: &'static str,
        /// The configured CPU.
        cpu: u16,
        /// The CPUs that the process may use.
        allowed: String,
    },
    /// A way to rest that the machine does not support.
    #[error("`lcores.idle`: {error}")]
    Idle {
        /// Error of the wait function.
        error: dpdk::Error,
    },
    /// An lcore wakes up later than headroom allows.
    #[error(
        "`lcores.idle.wake: {}` is too short here: lcore {lcore}, which polls lossless ports, ends half of its rests \
         {late} late or more; write `wake: {}` and a `poll_gap` that covers it, or `idle: poll`",
        .idle.wake, twice(*.late)
    )]
    WakesLate {
        /// Number of the lcore among the dataplane lcores.
        lcore: usize,
        /// Median delay of its rests.
        late: Nanos,
        /// The idle settings of the lcore.
        idle: IdleConfig,
    },
    /// The network namespace of `routing.linux` or its taps.
    #[error(transparent)]
    Kernel(#[from] super::KernelError),
    /// A thread has ended by a panic, whose message was printed.
    #[error("thread {name} stopped because of a bug in Holdfast; please report it with the message above")]
    ThreadPanicked {
        /// Name of the thread.
        name: String,
    },
    /// With `--fail-on-loss`: a lossless class lost frames or was starved.
    #[error("a lossless class lost frames or was starved; see the report")]
    Lost,
}

/// Suggests a bound for all rests from their median delay `late`: its double, in whole microseconds.
fn twice(late: Nanos) -> Nanos {
    Nanos((2 * late.0).div_ceil(1000) * 1000)
}

impl RunError {
    /// Whether the configuration is wrong on every machine.
    #[must_use]
    pub fn is_of_input(&self) -> bool {
        matches!(self, Self::NoLink { .. } | Self::TooManyPorts { .. } | Self::PciWithoutHugepages)
    }

    /// Adds the name of the port to an error of DPDK.
    pub(super) fn at_port(port: &str) -> impl FnOnce(dpdk::Error) -> Self {
        let port = port.to_owned();
        move |error| RunError::Port { port, error }
    }
}
