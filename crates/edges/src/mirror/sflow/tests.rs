//! A strict reader of sFlow version 5, and the agent by it.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::mirror::tests::{any_copy, facts, full_copy};
use crate::plan::DropReason;
use crate::plan::mirror::CopyFrame;
use crate::units::BitRate;

/// A record: its format and its bytes.
type Record = (u32, Vec<u8>);

/// A sample, with the words before its records.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sample {
    format: u32,
    words: Vec<u32>,
    records: Vec<Record>,
}

impl Sample {
    fn record(&self, format: u32) -> Option<&[u8]> {
        self.records.iter().find(|record| record.0 == format).map(|record| &*record.1)
    }

    /// A record as words.
    fn words(&self, format: u32) -> Option<Vec<u32>> {
        self.record(format)
            .map(|bytes| bytes.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect())
    }
}

fn word(bytes: &mut &[u8]) -> u32 {
    let (front, remaining) = bytes.split_at(4);
    *bytes = remaining;
    u32::from_be_bytes(front.try_into().unwrap())
}

fn record(bytes: &mut &[u8]) -> Record {
    let (format, len) = (word(bytes), word(bytes) as usize);
    assert_eq!(len % 4, 0, "record {format}");
    let (front, remaining) = bytes.split_at(len);
    *bytes = remaining;
    (format, front.to_vec())
}

/// Reads a datagram: its number, its uptime, and its samples.
fn read(mut bytes: &[u8], agent: IpAddr) -> (u32, u32, Vec<Sample>) {
    assert!(bytes.len() <= 1400, "{} bytes", bytes.len());
    let bytes = &mut bytes;
    assert_eq!(word(bytes), 5);
    let len = if agent.is_ipv4() { 4 } else { 16 };
    assert_eq!(word(bytes), if agent.is_ipv4() { 1 } else { 2 });
    let octets: Vec<u8> = match agent {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (front, remaining) = bytes.split_at(len);
    assert_eq!(front, octets);
    *bytes = remaining;
    assert_eq!(word(bytes), 0, "sub-agent");
    let (sequence, uptime, count) = (word(bytes), word(bytes), word(bytes));
    let samples = (0..count).map(|_| {
        let (format, sample) = record(bytes);
        let mut remaining = &*sample;
        let words = (0..match format {
            1 => 7,
            2 => 2,
            5 => 7,
            _ => panic!("sample {format}"),
        })
            .map(|_| word(&mut remaining));
        let words = words.collect();
        let records = (0..word(&mut remaining)).map(|_| record(&mut remaining)).collect();
        assert!(remaining.is_empty(), "bytes behind the records");
        Sample { format, words, records }
    });
    let samples = samples.collect();
    assert!(bytes.is_empty(), "bytes behind the samples");
    (sequence, uptime, samples)
}

/// An agent with a collector.
struct Rig {
    agent: Agent,
    counters: Counters,
    socket: UdpSocket,
    address: IpAddr,
}

impl Rig {
    fn new(address: &str, poll: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let (counters, address) = (Counters::new(4, 2), address.parse().unwrap());
        let collectors = vec![socket.local_addr().unwrap()];
        let config =
            SflowConfig { collectors, agent: address, poll: Nanos(poll), sample: 1000, ..SflowConfig::default() };
        let agent = Agent::new(config, 4, &counters, Nanos(0));
        Self { agent, counters, socket, address }
    }

    fn take(&mut self, copy: &CopyFrame, now: u64) -> Option<usize> {
        let copied = Copied { copy, bytes: &copy.bytes, at: 12_345 };
        self.agent.take(copied, &facts(), &self.counters, Nanos(now))
    }

    /// Flushes, and reads all datagrams.
    fn read(&mut self, now: u64) -> Vec<(u32, u32, Vec<Sample>)> {
        self.agent.flush(Nanos(now));
        let (mut read_before, mut buffer) = (Vec::new(), [0; 2000]);
        for _ in 0..std::mem::take(&mut self.agent.sent) {
            let len = self.socket.recv(&mut buffer).unwrap();
            read_before.push(read(&buffer[..len], self.address));
        }
        read_before
    }

    fn samples(&mut self, now: u64) -> Vec<Sample> {
        self.read(now).into_iter().flat_map(|datagram| datagram.2).collect()
    }
}

#[test]
fn a_dropped_frame_is_a_discarded_packet_with_reason_queue_and_time() {
    let mut rig = Rig::new("192.0.2.1", 0);
    rig.counters.lcores[0].sflow_lost[0].add(3);
    rig.counters.lcores[1].sflow_lost[0].add(4);
    rig.counters.lcores[1].sflow_lost[2].add(100);
    let copy = full_copy();
    rig.take(&copy, 1);
    rig.take(&CopyFrame { cause: CopyCause::Dropped(DropReason::HeadroomFull), queue: None, ..copy.clone() }, 1);
    let datagrams = rig.read(7_000_000);
    let [(1, 7, samples)] = &datagrams[..] else { panic!("{datagrams:?}") };
    assert_eq!((samples[0].format, &samples[0].words[..]), (5, &[1, 0, 4, 7, 4, 1, 259][..]));
    let mut header = vec![1, 1504, 4, 64];
    header.extend(copy.bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())));
    assert_eq!(samples[0].words(1), Some(header));
    assert_eq!(samples[0].words(1001), Some(vec![7, 0, 7, 0]));
    assert_eq!((samples[0].words(1036), samples[0].words(1040)), (Some(vec![3]), Some(vec![96 * 208])));
    assert_eq!(samples[0].record(1041).unwrap(), b"\0\0\0\x08holdfast\0\0\0\x0fqueue_threshold\0");
    assert_eq!(samples[0].words(1043), Some(vec![0, 12_345]));
    assert_eq!(samples[1].words, [2, 0, 4, 7, 4, 0, 259], "it was not dropped at its egress port");
    assert_eq!(samples[1].words(1036), None);
}

#[test]
fn a_sampled_frame_states_rate_and_pool_of_its_port() {
    let mut rig = Rig::new("2001:db8::1", 0);
    rig.counters.ports[3].sample_pool.add(5_000_000_001);
    let tagged = b"\x01\x02\x03\x04\x05\x06\x01\x02\x03\x04\x05\x06\x81\x00\x60\x07".to_vec();
    let copy =
        CopyFrame { cause: CopyCause::Sampled, egress: None, queue: None, bytes: tagged, len: 60, ..full_copy() };
    rig.take(&copy, 1);
    let samples = rig.samples(1);
    assert_eq!((samples[0].format, &samples[0].words[..]), (1, &[1, 4, 1000, 705_032_705, 0, 4, 0][..]));
    assert_eq!(samples[0].words(1001), Some(vec![7, 3, 7, 3]), "the priority is that of the tag");
    assert_eq!(samples[0].words(1).unwrap()[..4], [1, 64, 4, 16]);
}

#[test]
fn marked_frames_are_samples_of_a_logical_entity_at_the_rate_of_two_intervals() {
    const SECOND: u64 = 1_000_000_000;
    let mut rig = Rig::new("192.0.2.1", 0);
    rig.counters.ports[0].ecn_marked[3].add(77);
    rig.agent = Agent::new(rig.agent.config.clone(), 4, &rig.counters, Nanos(0));
    let copy = CopyFrame { cause: CopyCause::Marked, ..full_copy() };
    let mut rates = Vec::new();
    for second in 0..8 {
        rig.agent.tick(&facts(), &rig.counters, PortSet::EMPTY, Nanos(second * SECOND));
        for _ in 0..10 {
            rig.counters.ports[0].ecn_marked[3].add(if second < 4 { 1 } else { 100 });
            rig.take(&copy, second * SECOND);
        }
        let samples = rig.samples(second * SECOND);
        assert_eq!(samples[9].words[1], 3 << 24 | 1);
        assert_eq!(samples[9].words[3], rig.counters.ports[0].ecn_marked[3].get() as u32);
        assert_eq!(samples[9].words[5..], [4, 1]);
        rates.push(samples[9].words[2]);
    }
    assert_eq!(rates, [1, 1, 1, 1, 50, 100, 100, 100]);
}

#[test]
fn counters_of_all_ports_are_sampled_at_each_interval() {
    let mut rig = Rig::new("192.0.2.1", 10);
    let port = &rig.counters.ports[3];
    port.rx_frames[1].add(10);
    port.rx_bytes[1].add(1000);
    port.tx_frames[2].add(20);
    port.tx_bytes[2].add(2000);
    port.drops[8][DropReason::Truncated as usize].add(1);
    port.drops[0][DropReason::Threshold as usize].add(2);
    port.drops[0][DropReason::Wred as usize].add(3);
    port.pfc_tx_frames.add(4);
    port.pfc_rx_frames.add(5);
    port.pfc_rx_paused_ns[3].add(6_000_000);
    port.watchdog_storms[3].add(7);
    port.watchdog_restores[3].add(6);
    let mut count = 0;
    for now in 0..30 {
        rig.agent.tick(&facts(), &rig.counters, PortSet::only(3), Nanos(now));
        let samples = rig.samples(now);
        count += samples.len();
        let Some(last) = samples.last() else { continue };
        assert_eq!((last.format, &last.words[..]), (2, &[now as u32 / 10 + 1, 4][..]));
        let unknown = u32::MAX;
        let rate = BitRate(25_000_000_000).0;
        assert_eq!(
            last.words(1).unwrap(),
            [
                4,
                6,
                (rate >> 32) as u32,
                rate as u32,
                1,
                3,
                0,
                1040,
                10,
                unknown,
                unknown,
                2,
                1,
                unknown,
                0,
                2080,
                20,
                unknown,
                unknown,
                3,
                0,
                1
            ]
        );
        assert_eq!(last.words(11).unwrap(), [4, 5, 6000, 7, 6]);
        assert_eq!(last.record(1005).unwrap(), b"\0\0\0\x02p3\0\0");
        assert_eq!((samples[0].words(1).unwrap()[5], samples[0].words(11)), (1, None), "no link and no PFC");
    }
    assert_eq!(count, 12);
}

#[test]
fn datagrams_are_full_and_numbered() {
    let mut rig = Rig::new("192.0.2.1", 0);
    for _ in 0..100 {
        rig.take(&full_copy(), 1);
    }
    let datagrams = rig.read(1);
    assert_eq!(datagrams.iter().map(|datagram| datagram.0).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
    assert!(datagrams.iter().all(|datagram| datagram.2.len() == 5), "{datagrams:?}");
    let numbers = datagrams.iter().flat_map(|datagram| &datagram.2).map(|sample| sample.words[0]);
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=100).collect::<Vec<_>>());
}

#[test]
fn reasons_have_the_numbers_of_the_list_of_sflow() {
    for (reason, label, _) in DropReason::TABLE {
        let code = DropCode::from(*reason) as u32;
        // ICMP's numbers and those of sFlow; 256 is unknown.
        assert!(matches!(code, 0..=15 | 257..=371), "{label}: {code}");
    }
    let codes = [DropReason::NoRoute, DropReason::TtlExpired, DropReason::Wred, DropReason::Shed].map(DropCode::from);
    assert_eq!(codes.map(|code| code as u32), [6, 257, 260, 368]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_copy_is_read_back_from_its_sflow_sample(copies in prop::collection::vec(any_copy(), 1..6), is_v6: bool) {
        let mut rig = Rig::new(if is_v6 { "2001:db8::1" } else { "192.0.2.1" }, 0);
        let mut wanted = Vec::new();
        for copy in &copies {
            let port = if copy.cause == CopyCause::Marked { copy.egress.unwrap_or(copy.ingress) } else { copy.ingress };
            let len = rig.take(copy, 1);
            prop_assert_eq!(len.is_some(), port < 4);
            if port < 4 {
                wanted.push(copy);
            }
        }
        let samples = rig.samples(1);
        prop_assert_eq!(samples.len(), wanted.len());
        for (sample, copy) in samples.iter().zip(wanted) {
            let bytes = &copy.bytes[..copy.bytes.len().min(1024)];
            let header = sample.record(1).unwrap();
            prop_assert_eq!(&header[16..16 + bytes.len()], bytes);
            prop_assert_eq!(sample.words(1).unwrap()[1], u32::from(copy.len) + 4);
            prop_assert_eq!(sample.record(1001).is_some(), copy.vlan.is_some());
            prop_assert_eq!(sample.record(1036).is_some(), copy.queue.is_some());
            prop_assert_eq!(sample.record(1041).is_some(), matches!(copy.cause, CopyCause::Dropped(_)));
        }
    }
}
