//! A port with `device: vhost:PATH`. The guest is another switch with virtio-user, which uses vhost-user as a virtual
//! machine does. Its port obeys no PFC.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::frontend::{FrontEnd, MEMORY};
use crate::launch::{finish, run, start};
use crate::process::{Process, wait_for};
use crate::program::{Config, PATIENCE, report, sum};
use crate::scraping::scrape;

/// The switch. Its port to the receiver is 20 times slower than the guest's.
const SWITCH: &str = r#"
preset: roce
ports:
  - {name: vm, device: "vhost:SOCKET", speed: 1G}
  - {name: out, device: ring, speed: 50M}
fdb: {static: [{mac: "02:48:46:00:01:00", port: out}]}
hosts: [{name: receiver, port: out, mac: "02:48:46:00:01:00"}]
"#;

/// The guest: a program that sends RoCE through its virtual NIC.
const GUEST: &str = r#"
preset: roce
metrics: off
ports:
  - {name: app, device: ring, speed: 1G, pfc: queue}
  - {name: eth, device: "net_virtio_user0,path=SOCKET", trust_peer: true, speed: 1G, pfc: off, mac: "02:48:46:0c:00:00"}
fdb: {static: [{mac: "02:48:46:00:01:00", port: eth}]}
hosts:
  - name: sender
    port: app
    mac: "02:48:46:0c:00:01"
    flows: [{to: {mac: "02:48:46:00:01:00", ip: 10.48.0.98}, kind: roce, rate: 1G}]
"#;

fn config(text: &str, socket: &Path) -> Config {
    Config::new(&text.replace("SOCKET", &socket.display().to_string()))
}

#[test]
fn guest_without_pfc_is_stopped_by_its_queue_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("vm.sock");
    let (switch, guest) = (config(SWITCH, &socket), config(GUEST, &socket));
    let (switch, address) = start(&[&switch.path(), "--json"]);
    assert_eq!(socket.metadata().expect("the socket").permissions().mode() & 0o777, 0o600);
    let guest = Process::spawn(run(&[&guest.path(), "--json"]));
    let seen = wait_for("congestion", PATIENCE, || {
        let seen = scrape(address);
        let stops = seen.sum("holdfast_pfc_queue_stops_total", &[("port", "vm"), ("priority", "3")]);
        let sent = seen.sum("holdfast_port_sent_frames_total", &[("port", "out"), ("queue", "3")]);
        (stops >= 3.0 && sent > 5000.0).then_some(seen)
    });
    // The guest sends by one queue.
    assert_eq!(seen.sum("holdfast_receive_queue_carries", &[("port", "vm"), ("queue", "0"), ("group", "3")]), 1.0);
    let queues = seen.labels_of_nonzero("holdfast_receive_queue_carries", "queue");
    assert!(queues.iter().all(|queue| queue == "0"), "{queues:?}");

    guest.signal("TERM");
    let guest = report(&guest.wait(PATIENCE));
    switch.signal("TERM");
    let switch = report(&switch.wait(PATIENCE));
    assert_eq!(switch["verdict"]["outcome"], "kept", "{}", switch["verdict"]);
    for report in [&switch, &guest] {
        assert_eq!(sum(report, "pfc_sent_xoff", false), 0, "no PFC frame");
    }
    assert_eq!(sum(&switch, "dropped_frames", true), 0);
    let errors = &guest["ports"][1]["send_errors"];
    assert_eq!(errors, 0, "frames that the switch did not take stayed in the guest");
}

#[test]
fn socket_has_the_configured_group_and_an_unknown_one_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("vm.sock");
    // The only group that an unprivileged user can give a file is one of its own.
    let group = directory.path().metadata().expect("the directory").gid().to_string();
    let text = |group: &str| SWITCH.replace("SOCKET\"", &format!("SOCKET\", socket: {{group: {group}}}"));
    let (process, _) = start(&[&config(&text(&group), &socket).path(), "--json"]);
    let file = socket.metadata().expect("the socket");
    assert_eq!((file.permissions().mode() & 0o777, file.gid().to_string()), (0o660, group));
    process.signal("TERM");
    assert_eq!(process.wait(PATIENCE).status.code(), Some(0));

    let ended = finish(run(&[&config(&text("no-such-group"), &socket).path(), "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(1));
    let expected =
        "error: port `vm`: this machine has no group `no-such-group` for the socket; write another, or its number\n";
    assert!(ended.stderr.ends_with(expected), "{}", ended.stderr);
}

/// A frame of class 0 from the guest to the receiver.
fn frame() -> Vec<u8> {
    let mut frame = vec![0x02, 0x48, 0x46, 0x00, 0x01, 0x00, 0x02, 0x48, 0x46, 0x0c, 0x00, 0x02, 0x88, 0xb5];
    frame.resize(60, 0);
    frame
}

/// The ways in which the guest below misbehaves. Flags of a descriptor: 1 next, 2 device writes, 4 indirect.
fn misbehave(guest: &mut FrontEnd, how: usize, random: &mut u64) -> std::io::Result<()> {
    let mut draw = || {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *random >> 16
    };
    let memory = FrontEnd::address(0x1_0000);
    match how {
        // A chain that never ends, and one that leaves the table.
        0 => {
            guest.describe(0, memory, 1500, 1, 0);
            guest.describe(1, memory, 1500, 1, 60_000);
            guest.offer(&[0, 1, 0]);
        }
        // A chain of all entries, each of 4 GiB.
        1 => {
            (0..64).for_each(|index| guest.describe(index, memory, u32::MAX, 1, (index + 1) % 64));
            guest.offer(&[0]);
        }
        // Addresses outside of memory, and at its end.
        2 => {
            for (index, address) in (0..).zip([0, u64::MAX - 10, FrontEnd::address(MEMORY - 1), 0x10]) {
                guest.describe(index, address, 1500, 0, 0);
            }
            guest.offer(&[0, 1, 2, 3]);
        }
        // Frames without bytes, without a whole header, and longer than any buffer.
        3 => {
            for (index, len) in (0..).zip([0, 5, 12, 13, 65_000]) {
                guest.describe(index, memory, len, 0, 0);
            }
            guest.offer(&[0, 1, 2, 3, 4]);
        }
        // More chains than the ring has entries, and heads outside of the table.
        4 => {
            guest.offer(&[63, 64, 40_000, u16::MAX]);
            guest.claim(60_000);
        }
        // An indirect table at random.
        5 => {
            guest.describe(0, memory, 160, 4, 0);
            guest.offer(&[0]);
        }
        // A network header of random bytes, which asks for checksums and segments.
        6 => {
            let bytes: Vec<u8> = (0..200).map(|_| draw() as u8).collect();
            guest.write(0x1_0000, &bytes);
            guest.describe(0, memory, 200, 0, 0);
            guest.offer(&[0]);
        }
        // Random memory and rings.
        7 => {
            for _ in 0..200 {
                let bytes: Vec<u8> = (0..64).map(|_| draw() as u8).collect();
                guest.write(draw() % (MEMORY - 64), &bytes);
            }
            guest.claim(draw() as u16);
        }
        // Rings outside of memory.
        8 => guest.place_ring(1, 0x10, 0x20, 0x30)?,
        // More memory than there is.
        9 => guest.share_memory(1 << 40)?,
        // A message that the protocol does not have, of random bytes.
        _ => {
            let bytes: Vec<u8> = (0..draw() % 200).map(|_| draw() as u8).collect();
            guest.tell_with(draw() as u32 % 64, &bytes, None)?;
        }
    }
    Ok(())
}

/// Kinds of misbehaviour in [`misbehave`].
const KINDS: usize = 11;

#[test]
fn misbehaving_guests_neither_end_the_switch_nor_stop_other_ports() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("vm.sock");
    let text = SWITCH.replace("SOCKET", &socket.display().to_string()).replace(
        "hosts: [{name: receiver, port: out, mac: \"02:48:46:00:01:00\"}]",
        "hosts:\n  - {name: receiver, port: out, mac: \"02:48:46:00:01:00\"}\n  \
         - {name: healthy, port: other, flows: [{to: receiver, kind: udp, rate: 5M, dscp: 0}]}",
    );
    let text = text.replace("fdb:", "  - {name: other, device: ring, speed: 50M}\nfdb:");
    let config = Config::new(&text);
    let (mut switch, address) = start(&[&config.path(), "--json"]);
    let received = || scrape(address).sum("holdfast_port_received_frames_total", &[("port", "vm")]);
    let healthy = || scrape(address).sum("holdfast_port_received_frames_total", &[("port", "other")]);
    let mut random = 7;
    for round in 0..3 * KINDS {
        let before = received();
        let mut guest = wait_for("a guest that is connected", PATIENCE, || FrontEnd::connect(&socket).ok());
        guest.send(&frame());
        wait_for("its frame", PATIENCE, || {
            assert!(switch.is_running(), "round {round}: {}", switch.stderr());
            (received() > before).then_some(())
        });
        // The switch may have closed the connection for an earlier fault.
        let _ = misbehave(&mut guest, round % KINDS, &mut random);
        let flows = healthy();
        wait_for("frames of the other port", PATIENCE, || {
            assert!(switch.is_running(), "round {round}: {}", switch.stderr());
            (healthy() > flows).then_some(())
        });
    }
    // The next proper guest is served.
    let before = received();
    let mut guest = wait_for("a guest that is connected", PATIENCE, || FrontEnd::connect(&socket).ok());
    guest.send(&frame());
    wait_for("its frame", PATIENCE, || (received() > before).then_some(()));
    drop(guest);
    switch.signal("TERM");
    assert_eq!(switch.wait(PATIENCE).status.code(), Some(0));
}
