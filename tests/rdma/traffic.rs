//! Programs that send RDMA messages from three guests to the first, with the arguments of docs/guests.md.

use std::time::Duration;

use crate::lab::Lab;
use crate::process::wait_for;

/// Longest time for the programs to end, on a busy machine.
const END: Duration = Duration::from_secs(300);

/// Counters of soft-RoCE that grow if a packet was lost, or if it took longer than the sender waits.
pub const ERRORS: [&str; 3] = ["out_of_seq_request", "rcvd_seq_err", "completer_retry_err"];

/// TCP port of a server's handshake, less the number of its guest.
const PORT: u16 = 18515;

/// How a program sends.
pub struct Flow {
    /// `ib_write_bw` or `ib_send_bw`.
    pub program: &'static str,
    /// Bytes of a message; a packet has 1,024.
    pub size: u32,
    /// Amount: `-D seconds`, or `-n messages`.
    pub amount: String,
    /// Exponent of the time before a sender retries, by the InfiniBand specification: [`Flow::retry_after`].
    pub timeout: u32,
}

impl Flow {
    /// Starts the programs of the first guest, then those of the others. GID 1 is the IPv4 address. DSCP 26 is class 3
    /// of the preset; the lowest bits of 106 say that ECN is understood.
    #[track_caller]
    pub fn start(&self, lab: &mut Lab) {
        let receiver = lab.guests[0].ipv4();
        let Self { program, size, amount, timeout } = self;
        let line =
            |port| format!("{program} -d rxe0 -x 1 -F --tclass 106 -s {size} -q 2 -u {timeout} -p {port} {amount}");
        for (at, port) in (1..lab.guests.len()).zip(PORT..) {
            lab.guests[0].start(&format!("{program}{at}"), &line(port));
            lab.guests[0].wait_for_listener(port);
        }
        for (at, port) in (1..lab.guests.len()).zip(PORT..) {
            lab.guests[at].start(program, &format!("{} {receiver}", line(port)));
        }
    }

    /// Returns the time before a sender retries.
    pub fn retry_after(&self) -> Duration {
        Duration::from_nanos(4096 << self.timeout)
    }

    /// Waits until all programs have ended, and asserts that they succeeded.
    #[track_caller]
    pub fn wait_for_success(&self, lab: &mut Lab) {
        let names: Vec<String> = (1..lab.guests.len()).map(|at| format!("{}{at}", self.program)).collect();
        let at_receiver = names.iter().map(|name| (0, name.as_str()));
        let at_senders = (1..lab.guests.len()).map(|at| (at, self.program));
        for (at, name) in at_senders.chain(at_receiver) {
            let end = wait_for("end of the RDMA programs", END, || lab.guests[at].ended(name));
            assert_eq!(end.0, 0, "{name} of guest {}: {}", at + 1, end.1);
        }
    }

    /// Kills all programs.
    #[track_caller]
    pub fn kill(&self, lab: &mut Lab) {
        for guest in &mut lab.guests {
            guest.try_run(&format!("killall -9 {}", self.program));
        }
    }
}

/// Counts at the guests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Sum of each of [`ERRORS`] over all guests.
    pub errors: [u64; 3],
    /// Senders that gave up.
    pub given_up: u64,
    /// RDMA packets that the first guest received.
    pub received: u64,
    /// Packets that it received with a mark of congestion.
    pub marked: u64,
}

impl Counts {
    /// Reads the counters.
    #[track_caller]
    pub fn read(lab: &mut Lab) -> Self {
        let counters: Vec<_> = lab.guests.iter_mut().map(|guest| guest.rdma_counters()).collect();
        let sum = |name: &str| counters.iter().map(|of_guest| of_guest[name]).sum();
        Self {
            errors: ERRORS.map(sum),
            given_up: sum("retry_exceeded_err"),
            received: counters[0]["rcvd_pkts"],
            marked: lab.guests[0].marked_packets(),
        }
    }

    /// Returns the counts since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let mut errors = self.errors;
        errors.iter_mut().zip(before.errors).for_each(|(now, before)| *now -= before);
        Self {
            errors,
            given_up: self.given_up - before.given_up,
            received: self.received - before.received,
            marked: self.marked - before.marked,
        }
    }
}
