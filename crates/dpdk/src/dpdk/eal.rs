//! DPDK's environment abstraction layer (EAL): started once, and shut down when its last user is gone.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use dpdk_sys::{HF_MAX_LCORE, libc, rte_mempool};

use crate::sets::PortSet;
use crate::sync::{AtomicBool, Ordering};

use super::claim::{self, Claim};
use super::lcore::{Lcore, allowed_cpus, list};
use super::{Error, check, guard, log, mempool, port};

/// Set permanently by the first start: EAL cannot start twice, not even after it was shut down.
static STARTED: AtomicBool = AtomicBool::new(false);

/// The kind of memory that DPDK uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Ordinary pages, for virtual ports only. They need no privilege and no preparation.
    NoHuge {
        /// Size in MiB, all of it taken at the start.
        mib: u32,
    },
    /// Hugepages, taken as needed and returned at the end. No files are left behind.
    Huge {
        /// Size in MiB to take at the start.
        mib: Option<u32>,
    },
}

/// Options to start DPDK.
#[derive(Debug, Clone)]
pub struct EalOptions {
    /// Name of the program, for DPDK's log.
    pub program: String,
    /// The kind of memory to use.
    pub memory: Memory,
    /// The CPU that the calling thread is bound to.
    pub main_cpu: usize,
    /// The CPUs of the worker lcores. A CPU may occur several times, and may be the main one.
    pub worker_cpus: Vec<usize>,
    /// Virtual devices to create, e.g. `net_tap0,iface=tap0`; see also [`EthPort::plug`](super::EthPort::plug).
    pub vdevs: Vec<String>,
    /// Addresses of the PCI devices to use, e.g. `0000:01:00.0`. If empty, DPDK does not use the PCI bus.
    pub pci: Vec<String>,
    /// Name of this process among DPDK processes. `None` selects a name that is unique to the process.
    pub file_prefix: Option<String>,
    /// More arguments for EAL, passed unchanged.
    pub extra: Vec<String>,
    /// Whether to write DPDK's log to standard error, instead of only keeping its last lines for errors.
    pub verbose: bool,
}

impl Default for EalOptions {
    /// Returns options with no hugepages, 256 MiB, the first allowed CPU, no workers and no devices.
    fn default() -> Self {
        Self {
            program: "holdfast".to_owned(),
            memory: Memory::NoHuge { mib: 256 },
            main_cpu: allowed_cpus().first().copied().unwrap_or_default(),
            worker_cpus: Vec::new(),
            vdevs: Vec::new(),
            pci: Vec::new(),
            file_prefix: None,
            extra: Vec::new(),
            verbose: false,
        }
    }
}

/// The running EAL.
///
/// Pools, ports, queues and workers each hold a share of it; DPDK is shut down when the last share is dropped.
#[derive(Clone)]
pub struct Eal(Arc<Shared>);

/// The state that all shares have in common.
pub(super) struct Shared {
    workers: Vec<Lcore>,
    /// Held to create or remove devices, ports and workers: one thread at a time may do so.
    pub(super) control: Mutex<()>,
    /// The open ports, by number. Each has one owner.
    pub(super) open_ports: Mutex<PortSet>,
    /// Pools that were dropped while some of their buffers were out.
    orphans: Mutex<Vec<Orphan>>,
    /// The sole right to the PCI devices, by address.
    pub(super) nics: Mutex<BTreeMap<String, Claim>>,
    /// Whether DPDK looks for PCI devices: there was one at its start.
    pub(super) has_pci: bool,
}

/// A pool without an owner.
struct Orphan {
    pool: NonNull<rte_mempool>,
    count: u32,
}

// SAFETY: DPDK's pools may be used from any thread, and only the list has this pointer.
unsafe impl Send for Orphan {}

/// Returns the version of the DPDK in use, e.g. `DPDK 22.11.4`.
#[must_use]
pub fn version() -> String {
    // SAFETY: rte_version returns a string with a zero at its end that lives as long as the program.
    unsafe { CStr::from_ptr(dpdk_sys::rte_version()) }.to_string_lossy().into_owned()
}

impl Eal {
    /// Starts DPDK and binds the calling thread to `main_cpu`.
    ///
    /// # Errors
    ///
    /// Returns an error if the options or the machine are unsuitable. Most causes are found before EAL runs: some would
    /// make EAL abort the process, and after the others it cannot be started again.
    pub fn init(options: &EalOptions) -> Result<Self, Error> {
        let arguments = arguments(options)?;
        preflight(options)?;
        let nics = options.pci.iter().map(|address| check::pci_address(check::device_name(address)));
        let claims = nics.map(|address| Ok((address.clone(), claim::of_pci(&address)?)));
        let claims = claims.collect::<Result<BTreeMap<_, _>, _>>()?;
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyStarted);
        }
        log::install(options.verbose);
        let mark = log::mark();
        let redirect = if options.verbose { None } else { log::Redirect::start() };
        let status = start(arguments);
        let printed = redirect.map(log::Redirect::finish).unwrap_or_default();
        remove_runtime_directory();
        if status < 0 {
            return Err(start_error(&log::since(mark, &printed), &printed));
        }
        check_lcores(options)?;
        let workers = (1..).zip(&options.worker_cpus).map(|(id, &cpu)| Lcore { id, cpu }).collect();
        let shared = Shared {
            workers,
            control: Mutex::default(),
            open_ports: Mutex::default(),
            orphans: Mutex::default(),
            nics: Mutex::new(claims),
            has_pci: !options.pci.is_empty(),
        };
        let eal = Self(Arc::new(shared));
        // EAL ignores a device that its driver refuses; the switch must not.
        for devargs in &options.vdevs {
            let name = check::device_name(devargs);
            if port::find(name).is_none() {
                return Err(Error::DeviceRefused {
                    devargs: devargs.clone(),
                    log: log::since(mark, "no reason given; is its driver installed, and the name right?"),
                });
            }
        }
        for address in &options.pci {
            let address = check::pci_address(check::device_name(address));
            if port::find(&address).is_none() {
                return Err(Error::NoSuchPort {
                    device: address,
                    log: log::since(mark, "no driver for it is installed"),
                });
            }
        }
        Ok(eal)
    }

    /// Returns the worker lcores, in the order of `worker_cpus`.
    #[must_use]
    pub fn workers(&self) -> &[Lcore] {
        &self.0.workers
    }

    /// Returns the share itself.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Shared {
    /// Takes over a pool whose owner is gone while some of its `count` buffers are out.
    pub(super) fn adopt(&self, pool: NonNull<rte_mempool>, count: u32) {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(Orphan { pool, count });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // All ports and rings are gone by now, and their buffers are back.
        let orphans = self.orphans.get_mut().unwrap_or_else(PoisonError::into_inner);
        orphans.retain(|orphan| {
            // SAFETY: the pool is valid: only this list has had it since its owner handed it over.
            let back = unsafe { mempool::all_back(orphan.pool, orphan.count) };
            if back {
                // SAFETY: as above, and no buffer of it is out, so nothing refers to its memory.
                unsafe { dpdk_sys::rte_mempool_free(orphan.pool.as_ptr()) };
            }
            !back
        });
        // An Mbuf is still out. Its memory must stay valid, so DPDK is not shut down.
        if !orphans.is_empty() {
            return;
        }
        // SAFETY: EAL runs.
        if unsafe { dpdk_sys::hf_stop_interrupts() } != 0 {
            return;
        }
        // SAFETY: this was the last share, so no pool, port, queue or worker is left that could use DPDK, and no buffer
        // is out. The interrupt thread never returns to EAL. It runs once, since EAL starts once.
        unsafe { dpdk_sys::rte_eal_cleanup() };
    }
}

/// Calls EAL's own start function. Returns a negative number if it failed.
fn start(arguments: Vec<CString>) -> c_int {
    // Devices of arguments such as `--vdev=net_memif0` register their callbacks here.
    let is_guarded = |argument: &CString| argument.as_bytes().windows(9).any(|part| part == b"net_memif");
    let has_guarded = arguments.iter().any(is_guarded);
    let count = c_int::try_from(arguments.len()).unwrap_or(c_int::MAX);
    // EAL and its option parser keep pointers into the arguments, so these are never freed. This happens once per
    // process.
    let mut pointers: Vec<*mut c_char> = arguments.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    let pointers = pointers.leak();
    // SAFETY: it registers constants of libraries, once, before any of their functions is called.
    unsafe { dpdk_sys::hf_before_start() };
    guard::set_up();
    // SAFETY: `pointers` holds `count` strings with a zero at their ends and then a null pointer. All of them stay
    // allocated for good and are written by no other code. STARTED lets only one thread get here, once.
    let init = || unsafe { dpdk_sys::rte_eal_init(count, pointers.as_mut_ptr()) };
    guard::starting(has_guarded, init)
}

/// Removes the directory that EAL creates for files shared between processes. Holdfast configures EAL to share none.
fn remove_runtime_directory() {
    // SAFETY: EAL returns a string with a zero at its end, in a buffer that stays for good; it may be empty.
    let directory = unsafe { CStr::from_ptr(dpdk_sys::rte_eal_get_runtime_dir()) };
    // This fails, as it should, if the directory is not empty.
    let _ = std::fs::remove_dir(directory.to_string_lossy().as_ref());
}

/// Checks that EAL has the configured lcores. Extra arguments could change them, and launching on a missing lcore would
/// write to a file descriptor that is not DPDK's.
fn check_lcores(options: &EalOptions) -> Result<(), Error> {
    let wanted = u32::try_from(options.worker_cpus.len()).unwrap_or(u32::MAX).saturating_add(1);
    // SAFETY: these functions only read values that the running EAL has set; the numbers are below its limit.
    let as_told = unsafe {
        dpdk_sys::rte_get_main_lcore() == 0
            && dpdk_sys::rte_lcore_count() == wanted
            && (0..wanted).all(|id| dpdk_sys::rte_lcore_is_enabled(id) != 0)
    };
    if as_told {
        return Ok(());
    }
    Err(Error::Invalid {
        what: "an EAL argument that sets lcores".to_owned(),
        remedy: "leave out -l, -c, --lcores, --main-lcore and service cores, and choose CPUs with `lcores`".to_owned(),
    })
}

/// Whether `argument` would make EAL end the process or wait for another one. EAL also accepts unambiguous
/// abbreviations.
fn is_refused(argument: &str) -> bool {
    let name = argument.split_once('=').map_or(argument, |(name, _)| name);
    let abbreviates = |option: &str, shortest: usize| name.len() >= shortest && option.starts_with(name);
    abbreviates("--help", 4)
        || abbreviates("--version", 5)
        || abbreviates("--proc-type", 4)
        || argument.starts_with("-h")
        || argument.starts_with("-v")
}

/// Whether EAL would load a driver from the file or directory in `argument`, or a device's driver a program. Later
/// versions accept the file in the same word as the long option.
fn loads_code(argument: &str) -> bool {
    let name = argument.split_once('=').map_or(argument, |(name, _)| name);
    argument.starts_with("-d") || name.len() >= 4 && "--driver-path".starts_with(name) || check::loads_program(argument)
}

/// Whether the program's file gives this process rights that its user does not have (capabilities, set-user-ID). A user
/// of the program must not be able to run other code with these rights.
pub(super) fn has_rights_of_its_file() -> bool {
    // SAFETY: it only reads a number that the kernel passed to the process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Builds the command line of EAL.
fn arguments(options: &EalOptions) -> Result<Vec<CString>, Error> {
    let mut arguments = vec![options.program.clone(), "--no-telemetry".to_owned()];
    match options.memory {
        // `--no-shconf` cannot be combined with `--in-memory`, which includes it.
        Memory::NoHuge { mib } => {
            arguments.extend(["--no-huge", "--no-shconf", "-m"].map(str::to_owned));
            arguments.push(mib.to_string());
        }
        Memory::Huge { mib } => {
            arguments.push("--in-memory".to_owned());
            if let Some(mib) = mib {
                arguments.extend(["-m".to_owned(), mib.to_string()]);
            }
        }
    }
    let cpus = std::iter::once(&options.main_cpu).chain(&options.worker_cpus);
    let lcores: Vec<String> = cpus.enumerate().map(|(id, cpu)| format!("{id}@{cpu}")).collect();
    arguments.extend(["--lcores".to_owned(), lcores.join(",")]);
    let prefix = options.file_prefix.clone().unwrap_or_else(|| format!("holdfast-{}", std::process::id()));
    arguments.extend(["--file-prefix".to_owned(), prefix]);
    if options.pci.is_empty() {
        arguments.push("--no-pci".to_owned());
    }
    for address in &options.pci {
        arguments.extend(["-a".to_owned(), check::pci_address(address)]);
    }
    for vdev in &options.vdevs {
        arguments.extend(["--vdev".to_owned(), vdev.clone()]);
    }
    for argument in &options.extra {
        if is_refused(argument) {
            return Err(Error::Invalid {
                what: format!("the EAL argument `{argument}`"),
                remedy: "see DPDK's guide to EAL parameters, or `dpdk-testpmd --help`".to_owned(),
            });
        }
        if loads_code(argument) && has_rights_of_its_file() {
            return Err(Error::NoPermission {
                what: format!(
                    "the EAL argument `{argument}`, because the program's file has capabilities that loaded code would \
                     get"
                ),
                remedy:
                    "put the driver into DPDK's own directory, or run as root, or as a unit with AmbientCapabilities="
                        .to_owned(),
            });
        }
        arguments.push(argument.clone());
    }
    arguments
        .into_iter()
        .map(|argument| {
            CString::new(argument).map_err(|error| Error::Invalid {
                what: format!("the EAL argument {:?}", String::from_utf8_lossy(&error.into_vec())),
                remedy: "leave out the zero byte".to_owned(),
            })
        })
        .collect()
}

/// Detects conditions over which EAL would abort, or which EAL reports in unhelpful words.
fn preflight(options: &EalOptions) -> Result<(), Error> {
    let wanted = options.worker_cpus.len() + 1;
    let limit = HF_MAX_LCORE as usize;
    if wanted > limit {
        return Err(Error::TooManyLcores { wanted, limit });
    }
    let allowed = allowed_cpus();
    for &cpu in std::iter::once(&options.main_cpu).chain(&options.worker_cpus) {
        if !allowed.contains(&cpu) {
            return Err(Error::CpuNotAllowed { cpu, allowed: list(&allowed) });
        }
    }
    check_descriptors(options.worker_cpus.len())?;
    for (index, devargs) in options.vdevs.iter().enumerate() {
        let name = check::device_name(devargs);
        if options.vdevs[..index].iter().any(|other| check::device_name(other) == name) {
            return Err(Error::DeviceExists { device: name.to_owned() });
        }
    }
    for devargs in &options.vdevs {
        check::check_vdev(devargs)?;
    }
    for address in &options.pci {
        check::check_pci(&check::pci_address(check::device_name(address)))?;
    }
    // After the devices: hugepages for a missing device would be reserved in vain.
    match options.memory {
        Memory::NoHuge { mib } => check_memory(mib),
        Memory::Huge { mib } => check_hugepages(mib.unwrap_or_default()),
    }
}

/// Checks that there are file descriptors for EAL's pipes, two pipes per worker. Without them EAL aborts.
fn check_descriptors(workers: usize) -> Result<(), Error> {
    /// Descriptors for EAL itself and drivers, for 96 connections, and for the rest of the program.
    const OTHERS: u64 = 192;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to a local value.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    let wanted = 4 * workers as u64 + OTHERS;
    if !known || limit.rlim_cur >= wanted {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!("starting DPDK with {} file descriptors", limit.rlim_cur),
        remedy: format!("raise the limit with `ulimit -n {wanted}` or more"),
    })
}

/// Checks that the machine has `mib` MiB of ordinary memory. Mapping more succeeds, and later the kernel kills a
/// process.
fn check_memory(mib: u32) -> Result<(), Error> {
    let what = |free| format!("starting DPDK with {mib} MiB{free}");
    if mib < 16 {
        return Err(Error::Invalid { what: what(String::new()), remedy: "configure 64 MiB or more".to_owned() });
    }
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|remaining| remaining.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    match kib {
        Some(kib) if kib >> 10 < u64::from(mib) => Err(Error::Invalid {
            what: what(format!(" when {} MiB are free", kib >> 10)),
            remedy: "configure a smaller buffer or fewer ports, or free some memory".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Checks that there are free hugepages, and at least `mib` MiB of them.
fn check_hugepages(mib: u32) -> Result<(), Error> {
    let mut found = Vec::new();
    let mut free_kib = 0;
    for entry in std::fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(kib) = name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB")) else { continue };
        let read = |file: &str| -> u64 {
            std::fs::read_to_string(entry.path().join(file)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        let (total, free) = (read("nr_hugepages"), read("free_hugepages"));
        free_kib += free * kib.parse::<u64>().unwrap_or(0);
        found.push(format!("{free} of {total} pages of {kib} KiB are free"));
    }
    if free_kib == 0 || free_kib < u64::from(mib) << 10 {
        found.sort();
        let found = if found.is_empty() { "the kernel has none".to_owned() } else { found.join(", ") };
        let found = if mib == 0 { found } else { format!("{found}, {mib} MiB are needed") };
        return Err(Error::NoHugepages { found });
    }
    Ok(())
}

/// Returns the error of a failed start, with its cause if EAL's log or its output contains it.
fn start_error(log: &str, printed: &str) -> Error {
    // EAL's option parser prints the wrong argument first, if it can; its usage follows.
    let culprit = printed.split("; ").next().filter(|first| !first.is_empty() && !first.starts_with("Usage"));
    if let Some(culprit) = culprit.filter(|_| log.contains("'command line' arguments")) {
        return Error::Invalid {
            what: format!("starting DPDK with these arguments ({culprit})"),
            remedy: "correct `eal.args`; see DPDK's guide to EAL parameters, or `dpdk-testpmd --help`".to_owned(),
        };
    }
    if let Some(device) =
        log.split_once("failed to parse device \"").and_then(|(_, remaining)| remaining.split_once('"'))
    {
        return Error::UnknownDriver { device: device.0.to_owned() };
    }
    let lower = log.to_lowercase();
    if lower.contains("permission denied") || lower.contains("operation not permitted") {
        // SAFETY: geteuid only returns a number.
        let who = if unsafe { libc::geteuid() } == 0 { "even as root (is this a container?)" } else { "as this user" };
        return Error::NoPermission {
            what: format!("starting DPDK {who} ({log})"),
            remedy:
                "hugepages need CAP_IPC_LOCK or a higher `ulimit -l`, and CAP_SYS_NICE in a container; PCI devices \
                 need access to /dev/vfio; without both, DPDK needs no permission"
                    .to_owned(),
        };
    }
    Error::Start { log: if log.is_empty() { "no reason given".to_owned() } else { log.to_owned() } }
}
