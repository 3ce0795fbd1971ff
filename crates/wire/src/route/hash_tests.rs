use super::FlowHash;

/// Chi-square statistic of `hashes` over `buckets` buckets of equal share.
fn chi_square(hashes: impl Iterator<Item = u32>, buckets: usize) -> f64 {
    let mut counts = vec![0_u64; buckets];
    let mut all = 0;
    for hash in hashes {
        counts[hash as usize % buckets] += 1;
        all += 1;
    }
    let expected = f64::from(all) / buckets as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// A bound that a fair hash exceeds once in 300,000 times: the quantile of 4.5 standard deviations, by the
/// approximation of Wilson and Hilferty.
fn bound(buckets: usize) -> f64 {
    let freedom = (buckets - 1) as f64;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.5 * part.sqrt()).powi(3)
}

/// Tuples of RoCEv2 queue pairs as Linux and mlx5 make them: hosts in two racks, UDP to port 4791, and source ports
/// 0xc000 to 0xffff by a hash of the queue pair numbers, here in a row.
fn roce() -> impl Iterator<Item = (u32, u32, u32)> {
    let hosts = (0..16_u32).flat_map(|from| (0..16_u32).map(move |to| (0x0a01_0000 + from, 0x0a02_0000 + to)));
    hosts.flat_map(|(src, dst)| (0..64_u32).map(move |qp| (src, dst, (0xc000 + qp) << 16 | 4791)))
}

#[test]
fn roce_tuples_spread_evenly_over_members() {
    for seed in 0..8 {
        let hash = FlowHash::new(seed, false);
        for buckets in [2, 4, 8, 64, 256] {
            let found = chi_square(roce().map(|(src, dst, ports)| hash.v4(src, dst, 17, ports)), buckets);
            assert!(found < bound(buckets), "seed {seed}, {buckets} buckets: chi-square {found:.1}");
        }
    }
}

#[test]
fn ipv6_flows_spread_evenly_by_port_and_by_label() {
    let address = |host: u32| {
        let mut octets = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        octets[12..].copy_from_slice(&host.to_be_bytes());
        octets
    };
    let hash = FlowHash::new(3, false);
    for buckets in [2, 8, 64] {
        let by_port = roce().map(|(src, dst, ports)| hash.v6(address(src), address(dst), 17, ports, 0));
        assert!(chi_square(by_port, buckets) < bound(buckets), "{buckets} by port");
        let by_label = (0..16_384).map(|label| hash.v6(address(1), address(2), 17, 4791, label));
        assert!(chi_square(by_label, buckets) < bound(buckets), "{buckets} by label");
    }
}

/// The second tier sees only flows that the first tier sent to one member. They must spread again.
#[test]
fn another_seed_spreads_the_flows_of_one_member() {
    let (first, second) = (FlowHash::new(1, false), FlowHash::new(2, false));
    for buckets in [2, 4, 8] {
        let seen = roce().filter(|&(src, dst, ports)| (first.v4(src, dst, 17, ports) as usize).is_multiple_of(buckets));
        let found = chi_square(seen.map(|(src, dst, ports)| second.v4(src, dst, 17, ports)), buckets);
        assert!(found < bound(buckets), "{buckets} buckets: chi-square {found:.1}");
        let same = roce().filter(|&(src, dst, ports)| (first.v4(src, dst, 17, ports) as usize).is_multiple_of(buckets));
        let polarised = chi_square(same.map(|(src, dst, ports)| first.v4(src, dst, 17, ports)), buckets);
        assert!(polarised > bound(buckets), "an equal seed polarises: chi-square {polarised:.1}");
    }
}

#[test]
fn symmetric_hash_is_equal_in_both_directions() {
    let (plain, symmetric) = (FlowHash::new(5, false), FlowHash::new(5, true));
    let mut differing = 0;
    for (src, dst, ports) in roce().take(4096) {
        let back = ports.rotate_left(16);
        assert_eq!(symmetric.v4(src, dst, 17, ports), symmetric.v4(dst, src, 17, back));
        differing += u32::from(plain.v4(src, dst, 17, ports) != plain.v4(dst, src, 17, back));
        let [one, other] = [src, dst].map(|host| {
            let mut octets = [0; 16];
            octets[12..].copy_from_slice(&host.to_be_bytes());
            octets
        });
        assert_eq!(symmetric.v6(one, other, 17, ports, 7), symmetric.v6(other, one, 17, back, 9));
    }
    assert!(differing > 4000);
    let found = chi_square(roce().map(|(src, dst, ports)| symmetric.v4(src, dst, 17, ports)), 8);
    assert!(found < bound(8), "chi-square {found:.1}");
    assert_eq!(symmetric.v4(9, 9, 17, 7 << 16 | 8), symmetric.v4(9, 9, 17, 8 << 16 | 7), "equal addresses");
}
