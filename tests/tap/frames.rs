//! Frames built by hand and sent by tcpreplay.
//!
//! The bytes are written out here, independent of the program's own code, so a mistake there is not repeated here.

use std::net::Ipv6Addr;

use crate::namespace::Namespace;
use crate::process::Process;
use crate::program::PATIENCE;
use crate::rig::Host;

/// UDP port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// Length of MAC control frames without the frame check sequence.
const CONTROL_LEN: usize = 60;

/// Returns the bytes of a MAC address such as `02:48:46:00:00:01`.
pub fn mac(text: &str) -> [u8; 6] {
    let mut bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("a MAC address"));
    std::array::from_fn(|_| bytes.next().expect("six bytes"))
}

/// Returns a MAC control frame from `source` with this opcode and `body`.
fn control(source: &str, opcode: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x01];
    frame.extend(mac(source));
    frame.extend([0x88, 0x08]);
    frame.extend(opcode.to_be_bytes());
    frame.extend(body);
    frame.resize(CONTROL_LEN, 0);
    frame
}

/// Returns a PFC frame (IEEE 802.1Qbb) with these priorities and times; zero is XON.
pub fn pfc(source: &str, times: &[(u8, u16)]) -> Vec<u8> {
    let mut body = [0; 18];
    for &(priority, quanta) in times {
        body[1] |= 1 << priority;
        let at = 2 + 2 * usize::from(priority);
        body[at..at + 2].copy_from_slice(&quanta.to_be_bytes());
    }
    control(source, 0x0101, &body)
}

/// Returns a classic PAUSE frame (IEEE 802.3 annex 31B).
pub fn pause(source: &str, quanta: u16) -> Vec<u8> {
    control(source, 0x0001, &quanta.to_be_bytes())
}

/// Returns a UDP datagram to [`ROCE_PORT`] in a frame of `len` bytes, DSCP 26, ECN-capable, with `id` as IPv4
/// identification. No host has its IP address, so none answers.
pub fn roce(source: &str, destination: &str, id: u16, len: usize) -> Vec<u8> {
    let mut frame = mac(destination).to_vec();
    frame.extend(mac(source));
    frame.extend([0x08, 0x00]);
    let packet = u16::try_from(len - 14).expect("a frame's length");
    let mut header = vec![0x45, 26 << 2 | 0b10];
    header.extend(packet.to_be_bytes());
    header.extend(id.to_be_bytes());
    header.extend([0x40, 0, 64, 17, 0, 0]);
    header.extend([10, 48, 0, 98, 10, 48, 0, 99]);
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    frame.extend(header);
    for field in [0xc000, ROCE_PORT, packet - 20, 0] {
        frame.extend(field.to_be_bytes());
    }
    frame.resize(len, 0x5a);
    frame
}

/// Returns an LLDP frame (IEEE 802.1AB) to the nearest bridge: chassis `source`, this port, a minute to live.
pub fn lldp(source: &str, port: &str) -> Vec<u8> {
    let mut frame = mac("01:80:c2:00:00:0e").to_vec();
    frame.extend(mac(source));
    frame.extend([0x88, 0xcc]);
    // Chassis by MAC address, port by its name, time to live, end. Seven bits of type, nine of length.
    frame.extend([1 << 1, 7, 4]);
    frame.extend(mac(source));
    frame.extend([2 << 1, 1 + port.len() as u8, 5]);
    frame.extend(port.bytes());
    frame.extend([3 << 1, 2, 0, 60, 0, 0]);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Returns an ARP request (RFC 826) of `sender` at `source` for `target`, to all.
pub fn arp_request(source: &str, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &mac(source), &[0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]].concat();
    frame.extend([&mac(source)[..], &sender, &[0; 6], &target].concat());
    frame.resize(60, 0);
    frame
}

/// Returns a neighbour solicitation (RFC 4861) of `sender` at `source` for `target`, to all nodes of the link.
pub fn solicitation(source: &str, sender: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let option = [&[1, 1][..], &mac(source)].concat();
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target.octets(), &option].concat();
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    icmpv6("33:33:00:00:00:01", source, (sender, group), &message)
}

/// Returns an ICMPv6 echo request (RFC 4443) of `sender` at `source` to `target` at `destination`.
pub fn echo_v6(destination: &str, source: &str, sender: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    icmpv6(destination, source, (sender, target), &[128, 0, 0, 0, 0, 1, 0, 1])
}

/// Returns an ICMPv6 message with hop limit 255 and its checksum. `ends` are the IPv6 source and destination.
fn icmpv6(destination: &str, source: &str, ends: (Ipv6Addr, Ipv6Addr), message: &[u8]) -> Vec<u8> {
    let addresses = [ends.0.octets(), ends.1.octets()].concat();
    let words = [&addresses[..], &[0, 0, 0, message.len() as u8, 0, 0, 0, 58], message].concat();
    let sum: u32 = words.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    let mut frame = [&mac(destination)[..], &mac(source), &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend([0, message.len() as u8, 58, 255]);
    frame.extend(addresses);
    frame.extend(&message[..2]);
    frame.extend(checksum.to_be_bytes());
    frame.extend(&message[4..]);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Sends frames from `host` at `per_second` frames a second.
#[track_caller]
pub fn send(host: &Host, frames: &[Vec<u8>], per_second: u32) {
    send_at(&host.inside, &host.interface, frames, per_second);
}

/// Sends frames from an interface at `per_second` frames a second.
#[track_caller]
pub fn send_at(inside: &Namespace, interface: &str, frames: &[Vec<u8>], per_second: u32) {
    let (process, _file) = replay(inside, interface, frames, per_second, &[]);
    let ended = process.wait(PATIENCE);
    let all = format!("Successful packets:        {}\n", frames.len());
    assert!(ended.status.success() && ended.stdout.contains(&all), "{ended:?}");
}

/// Starts to send frames from an interface at `per_second` frames a second, with further options of tcpreplay. Dropping
/// the second value removes the file of frames.
#[track_caller]
pub fn replay(
    inside: &Namespace,
    interface: &str,
    frames: &[Vec<u8>],
    per_second: u32,
    options: &[&str],
) -> (Process, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("frames.pcap");
    std::fs::write(&file, pcap(frames)).expect("a file written");
    let mut command = inside.command("tcpreplay");
    // tcpreplay sleeps between frames with this timer. Its default is a busy loop, which takes the CPU from the switch.
    command.args(["--quiet", "--timer=nano", "--preload-pcap", "-i", interface, &format!("--pps={per_second}")]);
    command.args(options).arg(&file);
    (Process::spawn(command), directory)
}

/// Returns a capture file in the simplest format: pcap 2.4, Ethernet. All frames have the same time, because tcpreplay
/// is given a rate.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let words = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1]);
    for frame in frames {
        let len = u32::try_from(frame.len()).expect("a frame's length");
        file.extend(words(&[1, 0, len, len]));
        file.extend(frame);
    }
    file
}
