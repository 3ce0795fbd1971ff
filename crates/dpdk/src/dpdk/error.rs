//! Errors of DPDK, each one sentence that names the cause and the remedy.

use std::ffi::CStr;

/// An error of DPDK, a pool, a port or an lcore.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// EAL was or is running in this process.
    #[error("DPDK was already started in this process and starts only once; run a second switch as its own process")]
    AlreadyStarted,

    /// There are no free hugepages.
    #[error(
        "no free hugepages ({found}); reserve some with `sysctl vm.nr_hugepages=512` (1 GiB of 2 MiB pages), or run \
         without them (no-huge), which is slower and serves virtual ports only"
    )]
    NoHugepages {
        /// Free and total hugepages, as the kernel reports them.
        found: String,
    },

    /// The user lacks a permission.
    #[error("no permission for {what}; {remedy}")]
    NoPermission {
        /// The thing that needs the permission.
        what: String,
        /// The remedy.
        remedy: String,
    },

    /// The kernel's tap driver is missing.
    #[error(
        "/dev/net/tun does not exist, but `{device}` needs it; run `modprobe tun`, or give a container the device with \
         `--device /dev/net/tun`"
    )]
    NoTun {
        /// The port that needs it.
        device: String,
    },

    /// A CPU on which this process may not run.
    #[error(
        "CPU {cpu} is not among the CPUs this process may use ({allowed}); choose one of those, or widen the cpuset or \
         taskset"
    )]
    CpuNotAllowed {
        /// The requested CPU.
        cpu: usize,
        /// The allowed CPUs.
        allowed: String,
    },

    /// The CPU has no UMWAIT and TPAUSE.
    #[error(
        "this CPU has no UMWAIT and TPAUSE (WAITPKG: Intel Tremont, Alder Lake, Sapphire Rapids and later; a virtual \
         machine has it only if the host passes it through); write `wait: sleep` or `wait: pause`"
    )]
    NoWaitpkg,

    /// More lcores than DPDK was built for.
    #[error("{wanted} lcores are more than the {limit} this DPDK was built for; configure fewer")]
    TooManyLcores {
        /// Number of lcores, with the main one.
        wanted: usize,
        /// `RTE_MAX_LCORE`.
        limit: usize,
    },

    /// More ports than DPDK was built for.
    #[error(
        "port `{device}` is beyond the {limit} ports this DPDK was built for (an in-process link takes two); configure \
         fewer"
    )]
    TooManyPorts {
        /// The port that does not fit.
        device: String,
        /// `RTE_MAX_ETHPORTS`.
        limit: usize,
    },

    /// No driver matches this device name.
    #[error(
        "no driver matches `{device}`; write the name of a driver and a number, e.g. net_ring0, net_tap0, net_null0 or \
         net_af_packet0, and install the driver's package (librte-net-...); a static program \
         has the drivers that `holdfast --version` lists"
    )]
    UnknownDriver {
        /// The given name.
        device: String,
    },

    /// The driver refused to create this device.
    #[error("the driver refused `{devargs}` ({log}); check its arguments in DPDK's guide to the driver")]
    DeviceRefused {
        /// Name and arguments of the device.
        devargs: String,
        /// Messages of DPDK.
        log: String,
    },

    /// A device of that name exists already.
    #[error("the device `{device}` exists already; give each port its own device")]
    DeviceExists {
        /// The name of the device.
        device: String,
    },

    /// Another port, usually of another switch, has the interface, socket or PCI device.
    #[error("`{device}` cannot have the {claimed}: {holder} has it as a port; stop that switch, or name another")]
    InterfaceInUse {
        /// The port that asks for it.
        device: String,
        /// The interface, socket or PCI device.
        claimed: String,
        /// The process that has it.
        holder: String,
    },

    /// The PCI device does not exist.
    #[error("there is no PCI device {address} on this machine; see `lspci -D` or `dpdk-devbind.py --status`")]
    PciAbsent {
        /// The given address.
        address: String,
    },

    /// The PCI device is bound to a kernel driver that DPDK cannot use.
    #[error(
        "PCI device {address} is bound to {driver}, which DPDK cannot use; run `dpdk-devbind.py --bind=vfio-pci \
         {address}`"
    )]
    PciNotBound {
        /// The address.
        address: String,
        /// The kernel's driver, or "no driver".
        driver: String,
    },

    /// DPDK has no port of that name.
    #[error("DPDK has no port `{device}` ({log}); write a virtual device, or a PCI address with an installed driver")]
    NoSuchPort {
        /// The given name.
        device: String,
        /// Messages of DPDK.
        log: String,
    },

    /// The port or the queue is in use.
    #[error("{what} is in use; {remedy}")]
    InUse {
        /// The port or queue.
        what: String,
        /// The step that frees it.
        remedy: &'static str,
    },

    /// Frames of this size do not fit the buffers or the port.
    #[error("`{device}` cannot have an MTU of {mtu}: {limit}; write another `mtu` for the port (`ports[].mtu`)")]
    Mtu {
        /// The name of the port.
        device: String,
        /// The requested MTU.
        mtu: u16,
        /// The limit, and its cause.
        limit: String,
    },

    /// A step of setting up a port failed.
    #[error(
        "port `{device}` could not {step} ({log}); check that nothing else uses the device and that its driver allows \
         this"
    )]
    Port {
        /// The name of the port.
        device: String,
        /// The step that failed.
        step: &'static str,
        /// Messages of DPDK.
        log: String,
    },

    /// There is no memory for a pool or a ring.
    #[error(
        "no memory for {what}, {mib} MiB; free some (or reserve more hugepages), or configure a smaller buffer, a \
         smaller MTU or fewer ports"
    )]
    NoMemory {
        /// The pool or ring.
        what: String,
        /// Its size in MiB, rounded up.
        mib: usize,
    },

    /// An invalid name, size or option.
    #[error("{what} is not possible; {remedy}")]
    Invalid {
        /// The given value.
        what: String,
        /// A valid alternative.
        remedy: String,
    },

    /// EAL did not start, for a cause that no other error names.
    #[error("DPDK did not start ({log}); run with `--verbose` for its whole log")]
    Start {
        /// The last lines of its log.
        log: String,
    },

    /// DPDK refused an alarm, by which its interrupt thread is supervised.
    #[error("DPDK refused an alarm; is the machine short of memory or file descriptors (ulimit -n)?")]
    Alarm,

    /// The lcore already runs a function.
    #[error("lcore {lcore} is busy or unknown to DPDK; wait for its worker to end")]
    LcoreBusy {
        /// Number of the lcore.
        lcore: u32,
    },

    /// The function that ran on an lcore panicked.
    #[error("lcore {lcore} stopped because of a bug in Holdfast ({message}); please report it with this message")]
    LcorePanicked {
        /// Number of the lcore.
        lcore: u32,
        /// Message of the panic.
        message: String,
    },
}

/// Returns DPDK's text for an error number of either sign.
pub(super) fn errno_text(errno: i32) -> String {
    // SAFETY: rte_strerror takes any number and returns a string with a zero at its end. The buffer belongs to the
    // calling thread and stays until its next call; the string is copied before that.
    unsafe { CStr::from_ptr(dpdk_sys::rte_strerror(errno.abs())) }.to_string_lossy().into_owned()
}
