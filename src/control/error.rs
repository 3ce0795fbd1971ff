//! Why a switch could not run, each in one sentence that names the cause and the remedy.

use std::io;
use std::net::SocketAddr;

use crate::config::IdleConfig;
use crate::dpdk;
use crate::units::Nanos;

/// What can go wrong while running.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// DPDK, a pool or an lcore.
    #[error(transparent)]
    Dpdk(#[from] dpdk::Error),
    /// A port of the configuration.
    #[error("port `{port}`: {error}")]
    Port {
        /// Its name.
        port: String,
        /// What its device says.
        error: dpdk::Error,
    },
    /// The metrics address.
    #[error(
        "metrics cannot be served on {address}: {}; is another holdfast running? \
         choose another address with --metrics ADDRESS, or none with --metrics off",
        .error.kind()
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The API's socket.
    #[error(transparent)]
    Api(#[from] crate::api::SocketError),
    /// The control thread's own machinery.
    #[error("the control thread cannot start: {}; is a limit on open files (ulimit -n) very low?", .0.kind())]
    Runtime(io::Error),
    /// Whoever wants to be told that the switch runs cannot be.
    #[error(
        "NOTIFY_SOCKET is `{socket}`, where nobody can be told: {}; systemd sets it for units of Type=notify, unset it elsewhere",
        .error.kind()
    )]
    Notify {
        /// Where.
        socket: String,
        /// Why not.
        error: io::Error,
    },
    /// The report could not be written.
    #[error("the report cannot be written: {}; is the disk full?", .0.kind())]
    Output(io::Error),
    /// A virtual host without a link, which the configuration refuses.
    #[error("host `{host}` hangs on a port that is no in-process link; give that port `device: ring`")]
    NoLink {
        /// Its name.
        host: String,
    },
    /// More ports than the switch can have.
    #[error("{ports} ports are more than the 64 that a switch can have; remove some")]
    TooManyPorts {
        /// Those configured.
        ports: usize,
    },
    /// A PCI device and memory that it cannot use.
    #[error("`eal.memory: nohuge` leaves PCI devices without memory they can use; write `memory: huge` or remove it")]
    PciWithoutHugepages,
    /// The process may use no CPU at all, as far as it can see.
    #[error("the CPUs that this process may use are unknown; set `lcores.control` and `lcores.dataplane`")]
    NoCpu,
    /// A configured CPU that this process may not use.
    #[error("`{key}: {cpu}` is not among the CPUs this process may use ({allowed}); choose one of those")]
    CpuNotAllowed {
        /// The key.
        key: &'static str,
        /// Its value.
        cpu: u16,
        /// The CPUs it may use.
        allowed: String,
    },
    /// A way to rest that the machine does not have.
    #[error("`lcores.idle`: {error}")]
    Idle {
        /// What is missing.
        error: dpdk::Error,
    },
    /// An lcore that wakes later than headroom allows for.
    #[error(
        "`lcores.idle.wake: {}` is too little here: lcore {lcore}, which polls lossless ports, comes back from half of its \
         rests {late} late or more; write `wake: {}` and a `poll_gap` that covers it, or `idle: poll`",
        .idle.wake, twice(*.late)
    )]
    WakesLate {
        /// Its number among the dataplane lcores.
        lcore: usize,
        /// How late half of the rests end at least.
        late: Nanos,
        /// What is configured.
        idle: IdleConfig,
    },
    /// `--fail-on-loss`.
    #[error("a lossless class was not kept lossless, or was starved; the report says where")]
    Lost,
}

/// What `late` at the median suggests for all rests: the double, in whole microseconds.
fn twice(late: Nanos) -> Nanos {
    Nanos((2 * late.0).div_ceil(1000) * 1000)
}

impl RunError {
    /// Names the port that an error of DPDK is about.
    pub(super) fn at_port(port: &str) -> impl FnOnce(dpdk::Error) -> Self {
        let port = port.to_owned();
        move |error| RunError::Port { port, error }
    }
}
