//! The switch on NICs that QEMU emulates, through their real drivers: `make test-nic`.
//!
//! Each guest runs Debian's kernel without KVM and without root. Its NICs' wires end in this process, where virtual
//! hosts send, obey PFC and check each frame. `tests/guests` makes the guests' files. docs/nics.md says what these
//! tests prove and what they do not.
//!
//! The tests are ignored by `make test`, because they need packages of their own and minutes.

#![cfg(feature = "dpdk")]

#[path = "../guests/agent.rs"]
mod agent;
mod bench;
#[path = "../guests/boot.rs"]
mod boot;
mod guest;
mod incast;
mod installed;
mod nic;
#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
mod reload;
mod remedies;
mod row;
mod server;
mod steering;
mod talk;
mod wire;

use nic::{Access, Nic};

/// Declares the test of a row.
macro_rules! row {
    ($name:ident, $nic:ident, $access:ident) => {
        #[test]
        #[ignore = "needs QEMU and minutes: make test-nic"]
        fn $name() {
            row::run(Nic::$nic, Access::$access);
        }
    };
}

row!(e1000_by_vfio_loses_nothing, E1000, Vfio);
row!(e1000_by_uio_loses_nothing, E1000, Uio);
row!(e1000e_by_vfio_loses_nothing, E1000e, Vfio);
row!(e1000e_by_uio_loses_nothing, E1000e, Uio);
row!(igb_by_vfio_on_two_lcores_loses_nothing, Igb, Vfio);
row!(vmxnet3_by_vfio_loses_nothing, Vmxnet3, Vfio);
row!(vmxnet3_by_uio_loses_nothing, Vmxnet3, Uio);
row!(virtio_by_vfio_loses_nothing, Virtio, Vfio);
row!(virtio_by_uio_loses_nothing, Virtio, Uio);

#[test]
#[ignore = "needs QEMU and minutes: make test-nic"]
fn incast_of_hosts_that_ignore_pfc_loses_frames() {
    let mut bench = bench::Bench::start(Nic::E1000e, Access::Vfio);
    bench.start_switch();
    incast::incast_without_obedience(&mut bench);
}

#[test]
#[ignore = "needs QEMU and minutes: make test-nic"]
fn nic_leaves_and_comes_back_by_reload() {
    reload::nic_leaves_and_comes_back(Nic::E1000e, Access::Vfio);
}

#[test]
#[ignore = "needs QEMU and minutes: make test-nic"]
fn flow_rule_chooses_the_receive_queue() {
    steering::flow_rule_chooses_the_receive_queue("flow_rule_chooses_the_receive_queue");
}

#[test]
#[ignore = "needs QEMU and minutes: make test-nic"]
fn remedies_of_doctor_work_when_typed() {
    remedies::each_state_is_named_and_mended();
}

#[test]
#[ignore = "needs QEMU and minutes: make test-nic"]
fn installed_switch_comes_back_after_a_reboot_and_serves_its_operator() {
    installed::switch_comes_back_and_serves_its_operator();
}
