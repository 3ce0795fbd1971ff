//! In-process links carry frames.

use super::*;

#[test]
fn frames_cross_a_link_both_ways_as_they_are() {
    let data = pool("cross", 1023);
    let (link, mut switch, mut host) = link("cross", 64, &data);
    for length in [1, 14, 60, 64, 1500, 2048] {
        for (seed, from_switch) in [(1, true), (2, false)] {
            let sent = frame(length, seed);
            let (from, to) = if from_switch { (&mut switch, &mut host) } else { (&mut host, &mut switch) };
            let mut burst = Burst::new();
            burst.push(data.alloc_with(&sent).unwrap());
            assert!(burst[0].begins_where_expected());
            from.tx(&mut burst);
            assert!(burst.is_empty());
            assert_eq!(to.rx(BURST, &mut burst), 0);
            assert_eq!(burst.len(), 1);
            assert_eq!(burst[0].bytes(), sent);
            assert_eq!(burst[0].len(), length);
            Mbuf::free_all(&mut burst);
        }
    }
    assert_eq!(data.in_use(), 0);
    assert_eq!(link.switch.stats().unwrap().opackets, 6);
    assert_eq!(link.switch.stats().unwrap().ipackets, 6);
    link.switch.reset_stats().unwrap();
    assert_eq!(link.switch.stats().unwrap(), PortStats::default());
    assert!(link.host.link().unwrap().up);
    assert_eq!(link.host.driver(), "net_ring");
    assert_eq!(link.host.mac().unwrap(), [0; 6]);
    assert_eq!(link.host.mtu().unwrap(), 1500);
}

#[test]
fn a_full_link_leaves_the_rest_with_the_sender_in_order() {
    let data = pool("full", 1023);
    let (_link, mut switch, mut host) = link("full", 80, &data);
    let mut sent = 0_u8;
    let mut left = Burst::new();
    for _ in 0..2 {
        left.extend((0..BURST - left.len()).map(|_| {
            sent += 1;
            data.alloc_with(&[sent; 60]).unwrap()
        }));
        switch.tx(&mut left);
    }
    assert_eq!(left.len(), 2 * BURST - 80, "the link holds exactly what it was made for");
    assert_eq!(left[0].bytes()[0], 81);
    let mut got = Burst::new();
    for expected in 1..=2 * BURST as u8 {
        if got.is_empty() {
            host.rx(BURST, &mut got);
            switch.tx(&mut left);
        }
        let first = got.remove(0);
        assert_eq!(first.bytes(), [expected; 60]);
        first.free();
    }
    assert!(left.is_empty() && got.is_empty());
    assert_eq!(data.in_use(), 0);
}

#[test]
fn rx_appends_up_to_the_room() {
    let data = pool("room", 255);
    let (_link, mut switch, mut host) = link("room", 64, &data);
    let mut burst: Burst<Mbuf> = (0..BURST).map(|_| data.alloc_with(&[7; 60]).unwrap()).collect();
    switch.tx(&mut burst);
    burst.extend((0..BURST - 3).map(|_| data.alloc_with(&[8; 60]).unwrap()));
    host.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST);
    assert_eq!(burst[BURST - 4].bytes()[0], 8);
    assert_eq!(burst[BURST - 3].bytes()[0], 7);
    host.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST, "no room, nothing taken");
    Mbuf::free_all(&mut burst);
    host.rx(BURST, &mut burst);
    assert_eq!(burst.len(), BURST - 3);
    Mbuf::free_all(&mut burst);
    assert_eq!(data.in_use(), 0);
}

#[test]
fn frames_in_a_link_are_freed_when_its_last_queue_is_dropped() {
    let data = pool("left", 1023);
    // More links, one after the other, than DPDK has ports.
    for _ in 0..40 {
        let (link, mut switch, mut host) = link("left", 64, &data);
        let mut burst: Burst<Mbuf> = (0..20).map(|_| data.alloc_with(&[1; 60]).unwrap()).collect();
        switch.tx(&mut burst);
        burst.extend((0..20).map(|_| data.alloc_with(&[2; 60]).unwrap()));
        host.tx(&mut burst);
        assert_eq!(data.in_use(), 40);
        drop((switch, link));
        assert_eq!(data.in_use(), 40, "the host's queue still holds the link");
        drop(host);
        assert_eq!(data.in_use(), 0);
    }
}

#[test]
fn link_with_several_queues_keeps_their_frames_apart() {
    let data = pool("queues", 1023);
    let config = PortConfig { rx_queues: 3, ..PortConfig::default() };
    let mut link = RingLink::new(eal(), "queues", 8, &config, &data).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    let (mut switch, mut host) = (link.switch.queues().unwrap(), link.host.queues().unwrap());
    for (queue, frames) in [(0, 2_u8), (2, 9)] {
        let mut burst: Burst<Mbuf> = (0..frames).map(|i| data.alloc_with(&[queue as u8, i]).unwrap()).collect();
        host.tx_queue(queue, &mut burst);
        assert_eq!(burst.len(), usize::from(frames.saturating_sub(8)), "a full queue refuses the rest");
        Mbuf::free_all(&mut burst);
    }
    let waiting = |queues: &PortQueues| [0, 1, 2].map(|queue| queues.backlog(ClassSet::only(queue)));
    assert_eq!(waiting(&switch), [Some(2), Some(0), Some(8)]);
    assert_eq!(switch.backlog(ClassSet::ALL), Some(10));
    let mut burst = Burst::new();
    assert_eq!(switch.rx_queue(2, 5, &mut burst), 0);
    switch.rx(BURST, &mut burst);
    assert_eq!(burst.iter().map(|packet| packet.bytes()[0]).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 0, 0, 2, 2, 2]);
    assert_eq!(waiting(&switch), [Some(0); 3], "all queues in turn");
    host.rx(BURST, &mut burst);
    Mbuf::free_all(&mut burst);
    drop((switch, host));
    drop(link);
    assert_eq!(data.in_use(), 0, "frames in the rings are freed");
    let many = PortConfig { rx_queues: 5000, ..PortConfig::default() };
    let refused = EthPort::plug(eal(), "net_null_many", &many, &data).err();
    assert!(
        matches!(&refused, Some(Error::Invalid { what, .. }) if what.ends_with("5000 receive queues")),
        "{refused:?}"
    );
}

#[test]
fn a_link_in_the_process_cannot_be_monitored() {
    let pool = pool("monitored", 1023);
    let (_link, switch, host) = link("monitored", 64, &pool);
    assert!(!switch.monitor(now()) && !host.monitor(now()));
}
