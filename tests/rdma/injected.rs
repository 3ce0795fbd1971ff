//! Injected faults on RoCE packets: soft-RoCE repeats lost packets, and its transfers complete.

use crate::lab::{GUESTS, Lab, Pfc};
use crate::ready::machine_is_ready;
use crate::traffic::{Counts, Flow};

/// One of 200 RoCE packets to the first guest is lost, and one of 50 is marked.
const FAULTS: &str = "
faults:
  - {lose: vm1, one_in: 200, toward: host, flow: {destination_port: 4791}}
  - {mark: vm1, one_in: 50, toward: host, flow: {destination_port: 4791}}
";

/// Messages of one packet from each queue pair.
const MESSAGES: u64 = 1200;
const QUEUE_PAIRS: u64 = 2 * (GUESTS as u64 - 1);

#[test]
#[ignore = "needs QEMU and minutes: make test-rdma"]
fn lost_packets_are_repeated_and_the_transfers_complete() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::configured(Pfc::Queue, FAULTS);
    let before = Counts::read(&mut lab);
    let amount = format!("-n {MESSAGES}");
    let writes = Flow { program: "ib_write_bw", size: 1024, amount, timeout: 16 };
    writes.start(&mut lab);
    writes.wait_for_success(&mut lab);
    let counts = Counts::read(&mut lab).since(&before);
    let metrics = lab.metrics();
    let hit = |fault| {
        let labels = [("port", "vm1"), ("fault", fault), ("toward", "host")];
        metrics.sum("holdfast_fault_frames_total", &labels) as u64
    };
    let (lost, marked) = (hit("lose"), hit("mark"));
    eprintln!("injected: {lost} lost, {marked} marked; {counts:?}");
    let [out_of_sequence, sequence_errors, retries] = counts.errors;
    assert!(lost >= QUEUE_PAIRS * MESSAGES / 200 && out_of_sequence > 0, "{lost} lost: {counts:?}");
    assert!(sequence_errors + retries > 0 && counts.given_up == 0, "{counts:?}");
    assert!(counts.received >= QUEUE_PAIRS * MESSAGES, "{counts:?}");
    // The switch marks too.
    assert!(marked > 0 && counts.marked >= marked, "{marked} marked: {counts:?}");
    let drops = metrics.nonzero("holdfast_port_dropped_frames_total");
    assert_eq!(metrics.sum("holdfast_port_dropped_frames_total", &[("tc", "3")]), 0.0, "{drops:?}");
}
