//! Waits for the kernel's interfaces of ports. Containerlab, for example, adds interfaces to a container that runs.

use std::time::{Duration, Instant};

use super::signals::{Order, Signals};
use crate::config::Config;
use crate::config::model::DeviceKind;
use crate::dpdk;
use crate::output::{self, Severity};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Waits at most `longest` until all interfaces exist that ports of `config` need. Returns whether the switch should
/// start: false after an order to stop. A port without its interface then reports it.
pub(super) async fn wait(config: &Config, longest: Duration, signals: &mut Signals) -> bool {
    let names = names(config);
    let missing = || names.iter().copied().filter(|name| !dpdk::interface_exists(name)).collect::<Vec<_>>();
    let begin = Instant::now();
    let mut is_told = false;
    while begin.elapsed() < longest {
        let missing = missing();
        if missing.is_empty() {
            return true;
        }
        if !is_told {
            output::tell(Severity::Notice, &format!("note: waiting for the interfaces {}", missing.join(", ")));
            is_told = true;
        }
        tokio::select! {
            order = signals.next() => if order == Order::Stop { return false },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    true
}

/// The interfaces that must exist before the ports start.
fn names(config: &Config) -> Vec<&str> {
    let devargs = config.devices.iter().filter_map(|device| match &device.kind {
        DeviceKind::Vdev(devargs) => Some(devargs.as_str()),
        _ => None,
    });
    devargs.filter_map(dpdk::interface_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_on_kernel_interfaces_are_waited_for_and_taps_are_not() {
        let text = "ports:\n  - {name: a, device: \"net_af_packet0,iface=eth1\", speed: 1G}\n  - {name: b, device: \"net_tap0,iface=hf0\", speed: 1G}\n  - {name: c, device: \"net_af_xdp0,iface=eth2\", speed: 1G}\n";
        let config = crate::config::parse("x.yaml", text).expect("valid");
        assert_eq!(names(&config), ["eth1", "eth2"]);
    }
}
