//! Changes of the taps' addresses by a reload. A thread of its own makes them: the kernel may hold the lock of its
//! network configuration for seconds, for which the router must not stand still.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use ipnet::IpNet;
use rustix::io::Errno;

use crate::netlink::{KernelWriter, NetlinkError};
use crate::pulse::{PERIOD, Pulse};

/// Name of the thread.
const NAME: &str = "hf-addresses";
/// Attempts at a change that the kernel does not answer.
const ATTEMPTS: u32 = 3;

/// A change of the addresses of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressChange {
    /// Index of the link.
    pub link: u32,
    /// The address.
    pub address: IpNet,
    /// Whether the link gets the address; else it loses it.
    pub is_new: bool,
}

/// The way to the thread, which ends after the last change when this value is dropped.
#[derive(Debug)]
pub struct AddressWriter(Sender<AddressChange>);

impl AddressWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(mut writer: KernelWriter) -> std::io::Result<Self> {
        let (sender, changes) = channel();
        let write = move |change: AddressChange| {
            if change.is_new {
                writer.add_address(change.link, change.address)
            } else {
                writer.remove_address(change.link, change.address)
            }
        };
        let report = |error: NetlinkError| crate::control::warn(&error.to_string());
        let pulse = Pulse::start(NAME);
        std::thread::Builder::new().name(NAME.to_owned()).spawn(move || run(&changes, &pulse, write, report))?;
        Ok(Self(sender))
    }

    /// Has a change made after all that were sent before. Failures are printed.
    pub fn send(&self, change: AddressChange) {
        // The thread ends before only by a panic, which has been printed.
        let _ = self.0.send(change);
    }
}

/// Makes the changes in their order.
fn run(
    changes: &Receiver<AddressChange>,
    pulse: &Pulse,
    mut write: impl FnMut(AddressChange) -> Result<(), NetlinkError>,
    report: impl Fn(NetlinkError),
) {
    loop {
        pulse.beat();
        match changes.recv_timeout(PERIOD) {
            Ok(change) => pulse.outside(|| persist(change, &mut write)).unwrap_or_else(&report),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Makes a change, again if the kernel does not answer.
fn persist(
    change: AddressChange,
    mut write: impl FnMut(AddressChange) -> Result<(), NetlinkError>,
) -> Result<(), NetlinkError> {
    let mut attempt = 1;
    loop {
        match write(change) {
            Err(NetlinkError::Silent { .. }) if attempt < ATTEMPTS => attempt += 1,
            // The attempt before has removed it after all.
            Err(error) if attempt > 1 && !change.is_new && is_absent(&error) => return Ok(()),
            result => return result,
        }
    }
}

fn is_absent(error: &NetlinkError) -> bool {
    error.code() == Some(Errno::ADDRNOTAVAIL.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn change(last: u8, is_new: bool) -> AddressChange {
        AddressChange { link: 5, address: IpNet::from(std::net::IpAddr::from([10, 0, 0, last])), is_new }
    }

    fn silent() -> NetlinkError {
        NetlinkError::Silent { namespace: "tor".to_owned(), action: "add an address".to_owned() }
    }

    fn absent() -> NetlinkError {
        let error = Errno::ADDRNOTAVAIL.into();
        NetlinkError::Refused { namespace: String::new(), action: String::new(), error, detail: String::new() }
    }

    #[test]
    fn changes_keep_their_order_while_the_kernel_is_silent() {
        let (sender, changes) = channel();
        let wanted = [change(1, false), change(2, true), change(3, true)];
        wanted.iter().for_each(|change| sender.send(*change).unwrap());
        drop(sender);
        let (attempts, failures) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let write = |change: AddressChange| {
            attempts.borrow_mut().push(change);
            let count = attempts.borrow().iter().filter(|made| **made == change).count();
            let is_answered = change == wanted[0] || (change == wanted[2] && count == 2);
            if is_answered { Ok(()) } else { Err(silent()) }
        };
        run(&changes, &Pulse::start("test"), write, |error| failures.borrow_mut().push(error.to_string()));
        let [first, second, third] = wanted;
        assert_eq!(attempts.into_inner(), [first, second, second, second, third, third]);
        assert_eq!(failures.into_inner(), [silent().to_string()], "one line for each change that failed");
    }

    #[test]
    fn removal_that_was_made_without_an_answer_is_no_failure() {
        let mut answers = vec![absent(), silent()];
        assert!(persist(change(1, false), |_| Err(answers.pop().unwrap())).is_ok());
        assert!(persist(change(1, false), |_| Err(absent())).is_err(), "the link has never had it");
        let mut answers = vec![absent(), silent()];
        assert!(persist(change(1, true), |_| Err(answers.pop().unwrap())).is_err());
    }
}
