//! VPP: its process in a directory of its own, independent of an installed instance. Optional, since Debian has no
//! package of it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::counts::CountsFile;
use super::lab::{Lab, Memory};
use super::plan::{ENDLESS, HOPS, PORTS, PREFIXES, Point, hop_mac, router_mac};

/// The environment variable with the path of the program.
const VARIABLE: &str = "VPP";
/// Buffers beside the posted ones. Each poll receives up to 256 frames, and flooded frames have copies.
const SPARE_BUFFERS: u32 = 16_384;
/// The main heap in hugepages has room for the largest forwarding table. VPP's default is 1 GiB of ordinary pages.
const HUGE_HEAP: &str = "512M";

/// The program: `VPP`, or `vpp` of the search path.
///
/// # Errors
/// Without VPP, how to get this row.
pub fn find() -> Result<PathBuf> {
    let advice = "VPP is optional, and perf/README.md tells how to build it";
    if let Some(program) = env::var_os(VARIABLE).map(PathBuf::from) {
        if program.is_file() {
            return Ok(program);
        }
        bail!("{VARIABLE}={} is not a file; {advice}", program.display());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|directory| directory.join("vpp")).find(|program| program.is_file());
    found.with_context(|| format!("there is no `vpp` in PATH, and {VARIABLE} is not set; {advice}"))
}

/// The command of a bridge or router with all ports.
pub fn command(lab: &Lab, point: &Point, counts: &CountsFile) -> Result<Command> {
    let directory = lab.file("vpp");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).context("cannot make a directory for VPP")?;
    let (config, script) = (directory.join("startup.conf"), directory.join("script"));
    fs::write(&config, startup(lab, point, counts, &directory, &script)).context("cannot write a configuration")?;
    fs::write(&script, if point.routed { router() } else { bridge() }).context("cannot write a script")?;
    // VPP does not pass `-d` to EAL. The generator registers its driver when the dynamic linker loads it.
    let mut command = Command::new("env");
    let (key, path) = lab.library_path();
    command.env(key, path).arg("LD_PRELOAD=libhfgen.so").arg(find()?).arg("-c").arg(config);
    Ok(command)
}

/// The start-up configuration: defaults, except for the number of buffers, the heap and the place of files.
fn startup(lab: &Lab, point: &Point, counts: &CountsFile, directory: &Path, script: &Path) -> String {
    let buffers = PORTS as u32 * point.posted + SPARE_BUFFERS;
    // Without a page size, VPP would allocate hugepages itself, and they would stay.
    let (heap, page, eal) = match lab.memory {
        Memory::Huge { .. } => (format!("main-heap-size {HUGE_HEAP}"), "default-hugepage", ""),
        Memory::Ordinary => (String::new(), "default", "no-hugetlb no-shconf mem-alloc-request 1024"),
    };
    let mut text = format!(
        "unix {{ nodaemon nosyslog nobanner runtime-dir {} exec {} }}\n\
         api-segment {{ prefix holdfast-peers }}\n\
         cpu {{ main-core {} corelist-workers {} }}\n\
         memory {{ {heap} main-heap-page-size {page} }}\n\
         buffers {{ buffers-per-numa {buffers} page-size {page} }}\n\
         dpdk {{\n  no-pci {eal}\n",
        directory.display(),
        script.display(),
        lab.control,
        lab.core,
    );
    for device in lab.devices(point, ENDLESS, counts) {
        let _ = writeln!(text, "  vdev {device}");
    }
    text.push_str("}\n");
    text
}

/// VPP's name of a port of the generator.
fn interface(port: usize) -> String {
    format!("Ethernet{port}")
}

/// Commands for a learning bridge without ageing.
fn bridge() -> String {
    let mut text = "create bridge-domain 1 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0 mac-age 0\n".to_owned();
    for port in 0..PORTS {
        let _ = writeln!(text, "set interface l2 bridge {} 1", interface(port));
    }
    text + &all_up()
}

/// Commands for a router with the prefixes and next hops of [`Point::routed`].
fn router() -> String {
    let mut text = String::new();
    for port in 0..PORTS {
        let name = interface(port);
        let _ = writeln!(text, "set interface mac address {name} {}", router_mac(port));
        let _ = writeln!(text, "set interface ip address {name} 10.255.{port}.1/24");
    }
    text.push_str(&all_up());
    for (port, hop) in (0..PORTS).flat_map(|port| (0..HOPS).map(move |hop| (port, hop))) {
        let (name, address) = (interface(port), format!("10.255.{port}.{}", hop + 2));
        let _ = writeln!(text, "set ip neighbor static {name} {address} {}", hop_mac(port, hop));
        for prefix in (hop..PREFIXES).step_by(HOPS) {
            let _ = writeln!(text, "ip route add 10.{port}.{prefix}.0/24 via {address} {name}");
        }
    }
    text
}

fn all_up() -> String {
    (0..PORTS).fold(String::new(), |mut text, port| {
        let _ = writeln!(text, "set interface state {} up", interface(port));
        text
    })
}
