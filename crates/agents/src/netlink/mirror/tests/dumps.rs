//! Dumps: mark and sweep, and events among their messages.

use super::*;

#[test]
fn dump_removes_entries_that_it_does_not_name() {
    let mut rig = Rig::new();
    let [a, b] = ["10.1.0.0/16", "10.2.0.0/16"].map(|text| add(route(text, &[hop("10.0.1.2", 1)])));
    rig.feed([a, b.clone(), add(route("2001:db8::/32", &[hop("fe80::2", 1)]))]);
    assert_eq!(rig.dump(TableName::RoutesV4, [b]), DumpEnd::Complete);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert!(rig.hops("10.2.0.0/16").is_some());
    assert!(rig.hops("2001:db8::/32").is_some(), "each family has its own dump");
    rig.dump(TableName::Links, [up(2)]);
    assert_eq!(rig.view.links.keys().copied().collect::<Vec<_>>(), [2]);
    assert_eq!(rig.view.routes.len(), 0, "routes go with their link");
}

#[test]
fn cancelled_dump_removes_nothing() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)]))]);
    for table in TableName::ALL {
        rig.mirror.begin_dump(table);
        rig.mirror.cancel_dump(table);
    }
    rig.feed([]);
    assert!(rig.hops("10.1.0.0/16").is_some());
    assert_eq!(rig.view.links.len(), 3);
}

#[test]
fn route_that_was_read_before_its_removal_does_not_return() {
    let mut rig = Rig::new();
    let gone = route("10.1.0.0/16", &[hop("10.0.1.2", 1)]);
    rig.feed([add(gone.clone())]);
    rig.mirror.begin_dump(TableName::RoutesV4);
    rig.mirror.feed(KernelEvent::RouteGone(gone.clone()));
    rig.mirror.feed_dumped(add(gone));
    assert_eq!(rig.mirror.end_dump(TableName::RoutesV4), DumpEnd::Repeat);
    rig.feed([]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
}

#[test]
fn route_that_was_added_during_the_dump_stays() {
    let mut rig = Rig::new();
    rig.mirror.begin_dump(TableName::RoutesV4);
    rig.mirror.feed(add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)])));
    assert_eq!(rig.mirror.end_dump(TableName::RoutesV4), DumpEnd::Complete);
    rig.feed([]);
    assert!(rig.hops("10.1.0.0/16").is_some());
}

#[test]
fn flush_by_a_link_outranks_the_dump() {
    let mut rig = Rig::new();
    let flushed = route("10.1.0.0/16", &[hop("10.0.1.2", 1)]);
    rig.feed([add(flushed.clone())]);
    rig.mirror.begin_dump(TableName::RoutesV4);
    rig.mirror.feed(disabled(1));
    rig.mirror.feed_dumped(add(flushed));
    assert_eq!(rig.mirror.end_dump(TableName::RoutesV4), DumpEnd::Repeat);
    rig.feed([up(1)]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
}

#[test]
fn dump_restores_the_order_of_alternatives() {
    let mut rig = Rig::new();
    let [a, b] = [1, 2].map(|index| route("10.1.0.0/16", &[hop(&format!("10.0.{index}.2"), index)]));
    rig.feed([add(b.clone()), append(a.clone())]);
    rig.dump(TableName::RoutesV4, [add(a), add(b)]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1");
}

#[test]
fn same_dump_again_changes_nothing() {
    let mut rig = Rig::new();
    let all = || {
        let paths = [hop("fe80::1", 1), hop("fe80::2", 2)];
        [add(route("2001:db8::/32", &paths)), add(with_metric(2000, route("2001:db8::/32", &paths[..1])))]
    };
    rig.dump(TableName::RoutesV6, all());
    let before = rig.view.clone();
    rig.mirror.begin_dump(TableName::RoutesV6);
    all().into_iter().for_each(|event| rig.mirror.feed_dumped(event));
    assert_eq!(rig.mirror.end_dump(TableName::RoutesV6), DumpEnd::Complete);
    assert_eq!(rig.mirror.changes(100), []);
    assert_eq!(rig.view, before);
}

#[test]
fn entry_that_cannot_be_decoded_keeps_what_is_known_of_its_key() {
    let mut rig = Rig::new();
    let [kept, other, six] = [("10.1.0.0/16", "10.0.1.2"), ("10.2.0.0/16", "10.0.1.2"), ("2001:db8::/32", "fe80::2")]
        .map(|(to, gateway)| add(route(to, &[hop(gateway, 1)])));
    rig.feed([kept, other, six, object(1, hop("10.0.1.2", 1)), object(2, hop("10.0.1.2", 1))]);
    for (table, key) in [
        (TableName::RoutesV4, EntryKey::Route(prefix("10.1.0.0/16"))),
        (TableName::NextHops, EntryKey::NextHop(2)),
        (TableName::Links, EntryKey::Link(1)),
    ] {
        rig.mirror.begin_dump(table);
        rig.mirror.keep_undecoded(table, Some(key));
        assert_eq!(rig.mirror.end_dump(table), DumpEnd::Complete);
    }
    rig.feed([]);
    assert_eq!(rig.view.routes.keys().copied().collect::<Vec<_>>(), ["10.1.0.0/16", "2001:db8::/32"].map(prefix));
    assert!(rig.mirror.objects.contains(2) && !rig.mirror.objects.contains(1));
    assert_eq!(rig.view.links.keys().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn entry_without_a_readable_key_keeps_its_table() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)])), add(route("2001:db8::/32", &[hop("fe80::2", 1)]))]);
    for table in [TableName::RoutesV4, TableName::Links] {
        rig.mirror.begin_dump(table);
        rig.mirror.keep_undecoded(table, None);
        rig.mirror.end_dump(table);
    }
    rig.dump(TableName::RoutesV6, []);
    assert_eq!(rig.view.routes.keys().copied().collect::<Vec<_>>(), [prefix("10.1.0.0/16")], "each family by itself");
    assert_eq!(rig.view.links.len(), 3);
}

#[test]
fn table_with_undecoded_entries_is_announced_until_a_dump_has_none() {
    let mut rig = Rig::new();
    let table = TableName::RoutesV4;
    for _ in 0..2 {
        rig.mirror.begin_dump(table);
        (0..3).for_each(|_| rig.mirror.keep_undecoded(table, None));
        rig.mirror.end_dump(table);
    }
    assert_eq!(rig.mirror.changes(100), [Change::Undecoded { table }], "once");
    rig.mirror.begin_dump(table);
    rig.mirror.end_dump(table);
    assert_eq!(rig.mirror.changes(100), [Change::Decoded { table }]);
}
