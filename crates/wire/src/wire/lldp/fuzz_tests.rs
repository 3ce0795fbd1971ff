//! Random and mutated frames: reading never panics, and what it keeps is bounded.
//!
//! `HOLDFAST_FUZZ_FRAMES` sets their number, `HOLDFAST_FUZZ_SEED` the seed.

use super::fuzz::{Dice, any_frame, setting};
use super::*;

/// The most bytes that a data unit keeps on the heap: two identifiers, three texts of which each byte may be escaped,
/// addresses, names of VLANs, rows of applications.
const MOST_KEPT: usize =
    2 * 255 + 3 * 4 * 255 + MOST_ADDRESSES * (31 + 128) + MOST_VLANS * 4 * MOST_VLAN_NAME + 169 * 4;

/// Bytes that a data unit keeps on the heap.
fn kept(pdu: &Lldpdu) -> usize {
    let texts = [&pdu.port_description, &pdu.system_name, &pdu.system_description];
    let texts: usize = texts.into_iter().flatten().map(|text| text.as_str().len()).sum();
    let addresses: usize = pdu.management.iter().map(|address| address.address.len() + address.oid.len()).sum();
    let names: usize = pdu.dot1.vlan_names.iter().map(|vlan| vlan.name.as_str().len()).sum();
    let rows = pdu.dot1.applications.as_ref().map_or(0, Vec::len) * size_of::<Application>();
    pdu.chassis.id.len() + pdu.port.id.len() + texts + addresses + names + rows
}

#[test]
fn random_and_mutated_frames_neither_panic_nor_keep_much() {
    let frames = setting("HOLDFAST_FUZZ_FRAMES", 50_000);
    let mut dice = Dice(setting("HOLDFAST_FUZZ_SEED", 0x11d9_f422));
    let (mut taken, mut refused, mut defects, mut most) = (0_u64, 0_u64, 0_u64, 0);
    for _ in 0..frames {
        match parse(&any_frame(&mut dice)) {
            Ok(parsed) => {
                taken += 1;
                defects += u64::from(parsed.discarded > 0);
                most = most.max(kept(&parsed.pdu));
                let again = parsed.pdu.emit(parsed.source);
                assert!(again.frame.len() <= 1514 && parse(&again.frame).is_ok());
            }
            Err(_) => refused += 1,
        }
    }
    println!("{taken} taken, {defects} of them with discarded TLVs; {refused} refused; at most {most} bytes kept");
    assert!(most <= MOST_KEPT, "{most}");
    assert!(frames < 10_000 || taken > frames / 4 && refused > frames / 20 && defects > frames / 20);
}
