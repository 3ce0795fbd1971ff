//! Tests of the mode without a NIC: a mock of ethdev's functions records the calls.

use super::*;

/// A device that refuses priority `refuses`. `reads` is the mode that it reports.
#[derive(Default)]
struct Mock {
    calls: Vec<(u8, u32)>,
    refuses: Option<(u8, i32)>,
    reads: Option<u32>,
}

impl ClassPauses for Mock {
    fn mode(&mut self) -> Result<u32, i32> {
        self.reads.ok_or(-95)
    }

    fn set(&mut self, priority: u8, mode: u32) -> Result<(), i32> {
        self.calls.push((priority, mode));
        match self.refuses {
            Some((refused, status)) if refused == priority && mode == RTE_ETH_FC_RX_PAUSE => Err(status),
            _ => Ok(()),
        }
    }
}

fn both() -> ClassSet {
    ClassSet::from_bits(0b1_1000)
}

#[test]
fn device_obeys_lossless_priorities_only_and_generates_nothing() {
    let mut device = Mock { reads: Some(RTE_ETH_FC_RX_PAUSE), ..Mock::default() };
    assert_eq!(obey(&mut device, both()), Ok(ClassPfc::Obeys));
    assert_eq!(device.calls, [(3, RTE_ETH_FC_RX_PAUSE), (4, RTE_ETH_FC_RX_PAUSE)]);
    device.calls.clear();
    release(&mut device, both());
    assert_eq!(device.calls, [(3, RTE_ETH_FC_NONE), (4, RTE_ETH_FC_NONE)], "restored at the end");
}

#[test]
fn device_that_refuses_a_priority_obeys_none() {
    for (status, refused) in [(-95, 3), (-5, 4)] {
        let mut device = Mock { refuses: Some((refused, status)), ..Mock::default() };
        assert_eq!(obey(&mut device, both()), Err(status));
        let last = &device.calls[device.calls.len() - 2..];
        assert_eq!(last, [(3, RTE_ETH_FC_NONE), (4, RTE_ETH_FC_NONE)], "priority {refused}");
    }
}

#[test]
fn device_that_does_not_read_back_is_unconfirmed_and_another_mode_differs() {
    assert_eq!(obey(&mut Mock::default(), both()), Ok(ClassPfc::Unconfirmed));
    for mode in [RTE_ETH_FC_NONE, dpdk_sys::RTE_ETH_FC_FULL, dpdk_sys::RTE_ETH_FC_TX_PAUSE] {
        let mut device = Mock { reads: Some(mode), ..Mock::default() };
        assert_eq!(obey(&mut device, both()), Ok(ClassPfc::Differs), "mode {mode}");
    }
}

#[test]
fn drivers_that_were_not_read_are_refused_with_the_remedy() {
    assert_eq!(
        obedient("net_i40e", "DPDK 25.11.0").unwrap_err(),
        "its driver net_i40e was not read for PFC in hardware, only net_ixgbe and net_ice were; write `pfc: software`"
    );
    assert_eq!(
        obedient("net_ice", "DPDK 24.11.3").unwrap_err(),
        "net_ice obeys by class since DPDK 25.11, and this is DPDK 24.11.3; write `pfc: software`"
    );
    assert!(obedient("net_ice", "DPDK 25.11.0-rc2").is_ok() && obedient("net_ice", "DPDK 26.03.0").is_ok());
    assert!(obedient("net_ixgbe", "DPDK 22.11.11").is_ok() && obedient("net_ixgbe", "unknown").is_err());
}

#[test]
fn traffic_classes_are_the_priorities_in_both_directions() {
    let mut conf = rte_eth_conf::default();
    divide(&mut conf);
    let identity = [0, 1, 2, 3, 4, 5, 6, 7];
    // SAFETY: `divide` has written this variant of the union.
    let sent = unsafe { conf.tx_adv_conf.dcb_tx_conf.dcb_tc };
    assert_eq!((conf.rx_adv_conf.dcb_rx_conf.dcb_tc, sent), (identity, identity));
    for driver in READ {
        let [rx, tx] = driver.rings.unwrap_or([[0, 1, 2, 3, 4, 5, 6, 7]; 2]);
        assert_eq!([rx[7] + 1, tx[7] + 1], driver.queues, "{}: no queue beyond those of the last class", driver.name);
    }
}
