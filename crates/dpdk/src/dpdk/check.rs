//! Checks of a device before DPDK tries it, so that errors name their remedy.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

use dpdk_sys::libc;

use super::driver::Driver;
use super::eal::has_rights_of_its_file;
use super::{Error, interface};

/// Kernel drivers that DPDK's own drivers use beside, rather than in place of, the kernel.
const BIFURCATED: &[&str] = &["mlx4_core", "mlx5_core", "mana", "gve"];

/// Kernel drivers that give a program access to a PCI device.
const USERSPACE: &[&str] = &["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Longest name of a device in DPDK.
const NAME_MAX: usize = 63;

/// Longest name of a network interface in Linux.
const INTERFACE_MAX: usize = 15;

/// Returns the name in `name,argument=value,...`.
pub(super) fn device_name(devargs: &str) -> &str {
    devargs.split_once(',').map_or(devargs, |(name, _)| name)
}

/// Returns the value of `key` in `name,key=value,...`.
pub(super) fn argument<'a>(devargs: &'a str, key: &str) -> Option<&'a str> {
    arguments(devargs).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The keys with their values in `name,key=value,...`.
pub(super) fn arguments(devargs: &str) -> impl Iterator<Item = (&str, &str)> {
    devargs.split(',').skip(1).filter_map(|pair| pair.split_once('='))
}

/// Returns the kernel's interface that a device with these arguments sends and receives by, e.g. `eth1` of
/// `net_af_packet0,iface=eth1`; `None` for devices of other drivers.
#[must_use]
pub fn interface_of(devargs: &str) -> Option<&str> {
    argument(devargs, "iface").filter(|_| Driver::of_device(device_name(devargs)).is_on_interface())
}

/// Converts `01:00.0` to `0000:01:00.0`, which is DPDK's form, and leaves anything else unchanged.
pub(super) fn pci_address(name: &str) -> String {
    let is_hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let short = name.split_once(':').and_then(|(bus, remaining)| {
        let (device, function) = remaining.split_once('.')?;
        Some(is_hex(bus, 2) && is_hex(device, 2) && is_hex(function, 1))
    });
    if short == Some(true) { format!("0000:{name}") } else { name.to_owned() }
}

/// Parts of devargs by which a user has code of their own run: `xdp_prog` of af_xdp names a program for the kernel,
/// firmware of softnic names libraries, and failsafe takes devices from a command or a descriptor.
const LOADERS: [&str; 5] = ["xdp_prog", "net_softnic", "eth_softnic", "net_failsafe", "eth_failsafe"];

/// Whether a device has code of the user run.
pub(super) fn loads_program(devargs: &str) -> bool {
    LOADERS.iter().any(|part| devargs.contains(part))
}

/// Refuses a program for the kernel if `has_rights`: if this program's file has rights that its user does not have.
fn check_program(devargs: &str, has_rights: bool) -> Result<(), Error> {
    if !has_rights || !loads_program(devargs) {
        return Ok(());
    }
    Err(Error::NoPermission {
        what: format!(
            "`{}`, which runs code that its arguments name, because the program's file has capabilities that this \
             code would get",
            device_name(devargs)
        ),
        remedy: "leave it out, or run as root, or as a unit with AmbientCapabilities=".to_owned(),
    })
}

/// Checks that the machine meets the requirements of a virtual device.
pub(super) fn check_vdev(devargs: &str) -> Result<(), Error> {
    check_program(devargs, has_rights_of_its_file())?;
    let name = device_name(devargs);
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Invalid {
            what: format!("a device called {name:?}"),
            remedy: "use a driver's name and a number, e.g. net_tap0".to_owned(),
        });
    }
    match Driver::of_device(name) {
        Driver::Tap | Driver::Tun => {
            check_tap_arguments(devargs)?;
            check_tap(name, argument(devargs, "iface"))?;
        }
        Driver::AfPacket => check_af_packet(name, argument(devargs, "iface"))?,
        _ => {}
    }
    super::socket::make_room(devargs)
}

/// Arguments of net_tap, in this DPDK or a later one.
const TAP_ARGUMENTS: [&str; 4] = ["iface", "remote", "mac", "persist"];

/// Checks the arguments of a net_tap device. If net_tap finds an unknown argument, it silently ignores all of them.
fn check_tap_arguments(devargs: &str) -> Result<(), Error> {
    let unknown = |argument: &&str| !TAP_ARGUMENTS.contains(&argument.split('=').next().unwrap_or_default());
    match devargs.split(',').skip(1).find(unknown) {
        Some(argument) => Err(Error::Invalid {
            what: format!("the argument {argument:?} of `{}`", device_name(devargs)),
            remedy: format!("net_tap takes {}", TAP_ARGUMENTS.join(", ")),
        }),
        None => Ok(()),
    }
}

/// Checks that this process may create a tap interface called `interface`.
fn check_tap(device: &str, interface: Option<&str>) -> Result<(), Error> {
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(Error::NoPermission {
                what: format!("/dev/net/tun, which `{device}` needs"),
                remedy: "run as root, or let this user open the device".to_owned(),
            });
        }
        Err(_) => return Err(Error::NoTun { device: device.to_owned() }),
        Ok(_) => {}
    }
    require_capability(libc_cap::NET_ADMIN, "CAP_NET_ADMIN", device)?;
    if let Some(interface) = interface.filter(|name| name.is_empty() || name.len() > INTERFACE_MAX) {
        return Err(Error::Invalid {
            what: format!("a network interface called {interface:?}"),
            remedy: format!("use 1 to {INTERFACE_MAX} characters"),
        });
    }
    Ok(())
}

/// Checks that this process may use the interface of an af_packet port.
fn check_af_packet(device: &str, interface: Option<&str>) -> Result<(), Error> {
    require_capability(libc_cap::NET_RAW, "CAP_NET_RAW", device)?;
    let Some(interface) = interface else {
        return Err(Error::Invalid {
            what: format!("port `{device}` without an interface"),
            remedy: format!("name one that exists: {device},iface=eth0"),
        });
    };
    if !interface::exists(interface) {
        return Err(Error::Invalid {
            what: format!("port `{device}` on `{interface}`, which is not a network interface here,"),
            remedy: "choose one from `ip link`".to_owned(),
        });
    }
    Ok(())
}

/// Numbers of capabilities, from the Linux header `capability.h`.
mod libc_cap {
    pub(super) const NET_ADMIN: u32 = 12;
    pub(super) const NET_RAW: u32 = 13;
}

/// Checks that this process has a capability. If that is unknown, the kernel will report a missing one later.
fn require_capability(bit: u32, name: &str, device: &str) -> Result<(), Error> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    if effective >> bit & 1 == 1 {
        return Ok(());
    }
    Err(Error::NoPermission {
        what: format!("port `{device}` ({name} is missing)"),
        remedy: "run as root, or see in `holdfast doctor` how to grant it to the program, a container or a unit"
            .to_owned(),
    })
}

/// Checks that a PCI device exists, is bound to a driver that DPDK can use, and is accessible to this user.
pub(super) fn check_pci(address: &str) -> Result<(), Error> {
    let device = Path::new("/sys/bus/pci/devices").join(address);
    if address.contains('/') || !device.exists() {
        return Err(Error::PciAbsent { address: address.to_owned() });
    }
    let target = |link: &str| -> Option<String> {
        Some(std::fs::read_link(device.join(link)).ok()?.file_name()?.to_string_lossy().into_owned())
    };
    let driver = target("driver");
    match driver.as_deref() {
        Some(driver) if BIFURCATED.contains(&driver) => Ok(()),
        Some("vfio-pci") => match target("iommu_group") {
            Some(group) => check_vfio(address, &group),
            None => Ok(()),
        },
        Some(driver) if USERSPACE.contains(&driver) => Ok(()),
        driver => Err(Error::PciNotBound {
            address: address.to_owned(),
            driver: driver.map_or_else(|| "no driver".to_owned(), |driver| format!("the kernel's {driver}")),
        }),
    }
}

/// Checks that this user may open the VFIO group of a PCI device.
fn check_vfio(address: &str, group: &str) -> Result<(), Error> {
    let file = format!("/dev/vfio/{group}");
    let Ok(c_file) = std::ffi::CString::new(file.as_str()) else { return Ok(()) };
    // The access is only checked: opening the group would make it busy for DPDK.
    // SAFETY: the path is a string that ends with a zero byte, and the call only reads it.
    let status = unsafe { libc::access(c_file.as_ptr(), libc::R_OK | libc::W_OK) };
    // A kernel without IOMMU numbers its groups differently; DPDK finds them.
    if status == 0 || !Path::new(&file).exists() {
        return Ok(());
    }
    Err(Error::NoPermission {
        what: format!("{file}, the VFIO group of PCI device {address}"),
        remedy: format!("run as root, or `chown` {file} to this user and raise `ulimit -l`"),
    })
}

/// Converts the error number of a failed virtual device to an error.
pub(super) fn plug_error(status: i32, devargs: &str, log: &str) -> Error {
    let device = device_name(devargs).to_owned();
    // The driver joins a group of the kernel, which does not join sockets of different interfaces.
    if log.contains("PACKET_FANOUT") {
        return fanout_error(device, argument(devargs, "iface").unwrap_or_default());
    }
    match -status {
        // No bus accepts the name: no driver's name begins it.
        libc::EFAULT => Error::UnknownDriver { device },
        libc::EEXIST => Error::DeviceExists { device },
        _ => super::socket::socket_error(devargs, log)
            .unwrap_or_else(|| Error::DeviceRefused { devargs: devargs.to_owned(), log: log.to_owned() }),
    }
}

/// The error of an af_packet port whose group of sockets exists. The driver numbers it by this process and the
/// interface, so that the ports of two switches can have one number.
fn fanout_error(device: String, interface: &str) -> Error {
    let process = std::process::id();
    let number = (process ^ interface::index(interface).unwrap_or_default()) & 0xffff;
    Error::Invalid {
        what: format!(
            "opening `{device}` (another program has the kernel's fanout group {number}, the exclusive or of the numbers \
             of process {process} and of interface {interface})"
        ),
        remedy:
            "start the switch again, which gives it another process number; in a container, with another PID namespace"
                .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alias_of_a_driver_is_checked_as_the_driver() {
        for device in ["net_tap0", "eth_tap0", "net_tun0"] {
            let error = check_vdev(&format!("{device},bogus=1")).unwrap_err().to_string();
            assert!(error.contains("\"bogus=1\""), "{error}");
        }
        let error = check_vdev("eth_af_packet0,iface=hf-none").unwrap_err();
        assert!(matches!(error, Error::Invalid { .. } | Error::NoPermission { .. }), "{error}");
    }

    #[test]
    fn interface_is_that_of_a_port_on_an_existing_one() {
        assert_eq!(interface_of("net_af_packet0,iface=eth1,qpairs=1"), Some("eth1"));
        assert_eq!(interface_of("net_af_xdp0,iface=eth2"), Some("eth2"));
        assert_eq!(interface_of("net_tap0,iface=hf0"), None, "a tap makes its own");
    }

    #[test]
    fn a_program_for_the_kernel_is_refused_with_the_rights_of_the_file() {
        for devargs in ["net_af_xdp0,iface=e,xdp_prog=a.o", "--vdev=net_af_xdp0,xdp_prog=a.o", "eth_x0, xdp_prog=a"] {
            let error = check_program(devargs, true).unwrap_err().to_string();
            assert!(error.contains("which runs code") && error.contains("leave it out"), "{error}");
            assert_eq!(check_program(devargs, false), Ok(()), "root may load its own");
        }
        assert!(check_program("net_softnic0,firmware=/tmp/f", true).is_err());
        assert!(check_program("net_failsafe0,exec(cat /tmp/d)", true).is_err());
        assert_eq!(check_program("net_af_xdp0,iface=e", true), Ok(()));
    }

    #[test]
    fn an_argument_that_net_tap_does_not_know_is_named() {
        assert_eq!(check_tap_arguments("net_tap0,iface=a,mac=fixed"), Ok(()));
        let error = check_tap_arguments("net_tap0,iface=a,bogus=1").unwrap_err().to_string();
        assert!(error.contains("\"bogus=1\"") && error.contains("iface, remote, mac"), "{error}");
    }
}
