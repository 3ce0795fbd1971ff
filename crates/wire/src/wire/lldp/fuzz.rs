//! Random and mutated frames for tests, also those of other crates.

use super::*;
use crate::sets::ClassSet;
use crate::wire::MacAddr;

/// A generator of random numbers (xorshift64*).
pub struct Dice(pub u64);

impl Dice {
    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }
}

/// The number in an environment variable.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// A valid frame with every TLV that is read.
fn full(dice: &mut Dice) -> Vec<u8> {
    let mac = MacAddr([2, 0, 0, 0, 0, dice.below(12) as u8]);
    let mut pdu = Lldpdu::new(ChassisId::mac(mac), PortId::name("eth0"), dice.next() as u16);
    let table = EtsTable { class_of: [3; 8], bandwidth: [100; 8], algorithm: [Algorithm::ETS; 8] };
    pdu.system_name = Some(Text::new(&"n".repeat(dice.below(256))));
    pdu.system_description = Some(Text::new("Linux"));
    pdu.capabilities = Some(Capabilities::default());
    pdu.management = vec![ManagementAddress::of([10, 0, 0, 1].into()); dice.below(12)];
    pdu.dot1.port_vlan = Some(1);
    pdu.dot1.aggregation = Some(Aggregation::default());
    pdu.dot1.congestion = Some(CongestionNotification::default());
    let ets = EtsConfiguration { is_willing: true, has_credit_based: false, classes: 8, table };
    (pdu.dot1.ets, pdu.dot1.ets_recommendation) = (Some(ets), Some(EtsRecommendation(table)));
    let enabled = ClassSet::from_bits(dice.next() as u8);
    pdu.dot1.pfc = Some(PfcConfiguration { enabled, ..PfcConfiguration::default() });
    let row = Application { priority: 3, selector: Selector::DSCP, protocol: 26 };
    pdu.dot1.applications = Some(vec![row; dice.below(160)]);
    pdu.dot3 = Dot3 { max_frame: Some(1522), aggregation: pdu.dot1.aggregation, mac_phy: None };
    let mut frame = pdu.emit(mac).frame;
    if dice.below(2) == 0 {
        let vlan = [0xfe, 0x08, 0x00, 0x80, 0xc2, 0x03, 0, 1, 1, b'v'].repeat(dice.below(50));
        let end = frame.len() - 2;
        frame.splice(end..end, vlan);
    }
    frame
}

/// A frame of random bytes behind valid beginnings, or a valid frame that was cut, extended or changed.
pub fn any_frame(dice: &mut Dice) -> Vec<u8> {
    let mut frame = full(dice);
    match dice.below(8) {
        0 => {}
        1 => {
            let keep = [0, 12, 14, 23, 30, 34][dice.below(6)];
            let length = keep + dice.below(1600);
            frame.resize(length.max(keep), 0);
            (keep..frame.len()).for_each(|at| frame[at] = dice.next() as u8);
        }
        2 => frame.truncate(dice.below(frame.len() + 1)),
        3 => frame.extend((0..dice.below(9000)).map(|at| (at * 7) as u8)),
        _ => {
            for _ in 0..1 + dice.below(6) {
                // Mostly behind the header of Ethernet, where a change does not end the reading at once.
                let at = if dice.below(16) == 0 { dice.below(14) } else { 14 + dice.below(frame.len() - 14) };
                frame[at] = if dice.below(2) == 0 { dice.next() as u8 } else { frame[at] ^ 1 << dice.below(8) };
            }
        }
    }
    frame
}
