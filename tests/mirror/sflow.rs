//! Datagrams of sFlow in tshark, sflowtool and sfcapd.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use holdfast::mirror::{Destination, SflowConfig, Target};
use holdfast::plan::DropReason;
use holdfast::plan::mirror::CopyCause;
use holdfast::sets::PortSet;
use holdfast::units::Nanos;

use crate::rig::{DROPPED, Rig, TIME, copy, output, program};

/// Port of sFlow.
const SFLOW: u16 = 6343;

/// A collector, and a switch that sends to it.
fn rig() -> (Rig, UdpSocket) {
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let collectors = vec![collector.local_addr().unwrap()];
    let agent = "192.0.2.1".parse().unwrap();
    let config = SflowConfig { collectors, agent, poll: Nanos(1_000), sample: 512, ..SflowConfig::default() };
    let target = Target { name: "sflow".to_owned(), to: Destination::Sflow };
    (Rig::new(vec![target], Some(config)), collector)
}

/// Lets a switch sample its counters, and frames that meet `causes`, to ports from 5,000 on. Returns its datagrams.
fn datagrams(causes: &[CopyCause]) -> Vec<Vec<u8>> {
    let (mut rig, collector) = rig();
    let counters = rig.counters.clone();
    counters.ports[2].rx_frames[3].add(10_000);
    counters.ports[2].sample_pool.add(10_000);
    counters.ports[2].rx_bytes[3].add(1_000_000);
    counters.ports[0].tx_frames[3].add(20_000);
    counters.ports[0].ecn_marked[3].add(40);
    counters.ports[0].drops[3][DropReason::QueueThreshold as usize].add(17);
    counters.ports[2].pfc_tx_frames.add(4);
    counters.lcores[0].sflow_lost[0].add(9);
    rig.exporter.tick(PortSet::first(3), Nanos(2));
    for (index, cause) in causes.iter().enumerate() {
        rig.take(&copy(0, *cause, 5000 + index as u16), TIME + index as u64);
    }
    rig.exporter.flush(Nanos(7_000_000));
    let sent = rig.exporter.view().sflow.unwrap().datagrams;
    let mut buffer = [0; 2000];
    let receive = |_| {
        let len = collector.recv(&mut buffer).unwrap();
        buffer[..len].to_vec()
    };
    (0..sent).map(receive).collect()
}

/// Writes `datagrams` as a capture (pcap) of UDP to the port of sFlow.
fn capture(datagrams: &[Vec<u8>], folder: &Path) -> PathBuf {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for datagram in datagrams {
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 8])
            .ipv4([192, 0, 2, 1], [192, 0, 2, 9], 64)
            .udp(50_000, SFLOW);
        let mut frame = Vec::new();
        builder.write(&mut frame, datagram).unwrap();
        for word in [1, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let path = folder.join("sflow.pcap");
    std::fs::write(&path, file).unwrap();
    path
}

/// Whether all lines of `block` follow each other in `text`, apart from indentation.
fn has(text: &str, block: &str) -> bool {
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let (text, block) = (lines(text), lines(block.trim()));
    text.windows(block.len()).any(|window| window == block)
}

#[test]
fn tshark_decodes_samples_and_counters() {
    let Some(tshark) = program("tshark", true) else { return };
    let directory = tempfile::tempdir().unwrap();
    // The dissector of Wireshark 4.0 takes the bytes of a record that it does not know for further records, so that
    // frames with more than one such record, as marked ones, are not for it. It skips samples that it does not know.
    let path = capture(&datagrams(&[CopyCause::Sampled, DROPPED, CopyCause::Sampled]), directory.path());
    let run = |arguments: &[&str]| output(Command::new(&tshark).arg("-r").arg(&path).args(arguments));
    assert_eq!(run(&["-Y", "_ws.malformed"]), "");
    let tree = run(&["-V", "-O", "sflow"]);
    for wanted in [
        "Agent address: 192.0.2.1\nSub-agent ID: 0\nSequence number: 1\n",
        "Interface index: 1\nInterface Type: 6\nInterface Speed: 10000000000\nInterface Direction: Full-Duplex (1)\n",
        "Input Octets: 1040000\nInput Packets: 10000\n",
        "Output Packets: 20000\nOutput Multicast Packets: 4294967295\nOutput Broadcast Packets: 4294967295\n\
         Output Discarded Packets: 17\nOutput Errors: 0\n",
        "Sampling rate: 1 out of 512 packets\nSample pool: 10000 total packets\nDropped packets: 0\n\
         Input interface (ifIndex): 3\n",
        "Header protocol: Ethernet (1)\nFrame Length: 1450\nPayload stripped: 4\nSampled header length: 128\n",
        "Incoming 802.1Q VLAN: 7\nIncoming 802.1p priority: 3\nOutgoing 802.1Q VLAN: 7\nOutgoing 802.1p priority: 3\n",
        "Source Port: 1000\nDestination Port: 5002\n",
    ] {
        assert!(has(&tree, wanted), "no `{wanted}` in {tree}");
    }
    assert!(tree.contains("sFlow sample type: Unknown (5)"), "{tree}");
}

#[test]
fn sflowtool_decodes_samples_drops_marks_and_counters() {
    let given = std::env::var_os("HOLDFAST_SFLOWTOOL").map(PathBuf::from);
    let Some(sflowtool) = given.or_else(|| program("sflowtool", false)) else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = capture(&datagrams(&[CopyCause::Sampled, DROPPED, CopyCause::Marked]), directory.path());
    let text = output(Command::new(sflowtool).arg("-r").arg(path));
    for wanted in [
        "ifIndex 3\nnetworkType 6\nifSpeed 10000000000\nifDirection 1\nifStatus 3\nifInOctets 1040000\n",
        "counterBlock_tag 0:11\nPFC_requests 4\nPFC_indications 0\nPFC_pause_duration 0\nPFC_storm_detected 0\n\
         PFC_storm_restored 0\ncounterBlock_tag 0:1005\nifName p3\n",
        "sampleType FLOWSAMPLE\nsampleSequenceNo 1\nsourceId 0:3\nmeanSkipCount 512\nsamplePool 10000\ndropEvents 0\n\
         inputPort 3\noutputPort 0\n",
        "sampleType DISCARD\nsampleSequenceNo 1\nsourceId 0:3\ndropEvents 9\ninputPort 3\noutputPort 1\n\
         discardCode 259\ndiscardReason no_buffer_space\n",
        "discarded_extendedType egress_queue\ndiscarded_egress_queue_id 3\n",
        "discarded_extendedType queue_depth\ndiscarded_queue_depth_bytes 19968\n",
        "discarded_hw_trap_group holdfast\ndiscarded_hw_trap_name queue_threshold\n",
        "discarded_timestamp_nS 1795780800123456790\nendSample   ----------------------\n",
        "sampleType FLOWSAMPLE\nsampleSequenceNo 1\nsourceId 3:1\nmeanSkipCount 40\nsamplePool 40\ndropEvents 0\n\
         inputPort 3\noutputPort 1\n",
        "UDPSrcPort 1000\nUDPDstPort 5002\nUDPBytes 1408\n",
    ] {
        assert!(has(&text, wanted), "no `{wanted}` in {text}");
    }
}

/// A running sfcapd, which writes flows into `folder`.
struct Collector(Child);

impl Collector {
    /// Starts a collector at a port that was free, and returns it when it listens.
    fn start(sfcapd: &Path, folder: &Path) -> (Self, u16) {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(sfcapd);
        command.args(["-b", "127.0.0.1", "-p", &port.to_string(), "-w"]).arg(folder);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A port that is taken cannot be bound.
        wait("sfcapd to listen", || UdpSocket::bind(("127.0.0.1", port)).is_err());
        (Self(child), port)
    }

    /// Ends it, so that it writes its flows.
    fn stop(mut self) {
        output(Command::new("kill").args(["-TERM", &self.0.id().to_string()]));
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that the socket of UDP at `port` has not read.
fn unread(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    // Columns: number, local address and port, remote ones, state, and the queues `tx:rx`; all in hexadecimal.
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut socket = columns.filter(|columns| columns.len() > 4 && columns[1].ends_with(&format!(":{port:04X}")));
    let queues = socket.next().expect("the socket of sfcapd")[4];
    usize::from_str_radix(queues.split(':').nth(1).unwrap(), 16).unwrap()
}

fn wait(what: &str, mut is_done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_done() {
        assert!(Instant::now() < end, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sfcapd_collects_samples_and_marks_with_their_rates() {
    let (Some(sfcapd), Some(nfdump)) = (program("sfcapd", true), program("nfdump", true)) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (collector, port) = Collector::start(&sfcapd, directory.path());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in datagrams(&[CopyCause::Sampled, DROPPED, CopyCause::Marked]) {
        socket.send_to(&datagram, ("127.0.0.1", port)).unwrap();
    }
    wait("sfcapd to read all", || unread(port) == 0);
    // A signal in the middle of a datagram would cost it.
    std::thread::sleep(Duration::from_millis(300));
    collector.stop();
    let format = "fmt:%sa %da %sp %dp %in %out %pkt %byt %svln";
    let flows = output(Command::new(nfdump).arg("-q").arg("-R").arg(directory.path()).args(["-o", format]));
    let flows: Vec<String> = flows.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    // Packets are those for which a sample stands.
    let wanted = ["10.0.0.1 10.0.0.2 1000 5000 3 0 512 742400 7", "10.0.0.1 10.0.0.2 1000 5002 3 1 40 58000 7"];
    assert_eq!(flows, wanted);
}
