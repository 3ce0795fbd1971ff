//! Refused configurations, word for word.

use super::*;

#[test]
fn unknown_unit_is_refused() {
    refuse(
        "ports:\n  - name: p1\n    device: net_tap0\n    speed: 25Q\n",
        "x.yaml:4:12: ports[0].speed: `25Q` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s",
    );
}

#[test]
fn unknown_key_is_refused_with_nearest_key() {
    refuse_beside_ports("bufer: {size: 1MiB}\n", "x.yaml:4:1: unknown key `bufer`; did you mean `buffer`?");
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 1G, sped: 1G}]\n",
        "x.yaml:1:49: ports[0]: unknown key `sped`; did you mean `speed`?",
    );
    refuse_beside_ports("eal: {colour: blue}\n", "x.yaml:4:7: eal: unknown key `colour`; write `memory` or `args`");
}

#[test]
fn description_is_one_line_that_lldp_can_carry() {
    let refuse_text = |text: &str, error: &str| {
        let config = format!("ports: [{{name: p1, device: net_tap0, speed: 1G, description: {text}}}]\n");
        refuse(&config, &format!("x.yaml:1:62: ports[0].description: {error}"));
    };
    refuse_text("\"\"", "the description has 0 bytes; write 1 to 255");
    refuse_text(&"\u{e9}".repeat(128), "the description has 256 bytes; write 1 to 255");
    for text in ["a\\nb", "a\u{202e}b", "a\u{2028}b", "a\u{feff}b"] {
        let error = "the description has control or invisible characters; write one line of plain text";
        refuse_text(&format!("\"{text}\""), error);
    }
    refuse_text("{a: b}", "`{...}` is not a description; write e.g. \"rack 7, server 3\"");
}

#[test]
fn missing_key_is_refused() {
    refuse(
        "preset: roce\n",
        "x.yaml:1:1: `ports` is missing; write e.g. `ports: [{name: p1, device: ring, speed: 10G}]`",
    );
    refuse(
        "ports:\n  - {name: p1, device: net_tap0}\n",
        "x.yaml:2:5: ports[0]: `speed` is missing; write e.g. `speed: 10G`",
    );
}

#[test]
fn duplicate_key_is_refused() {
    refuse(
        "ports: []\npreset: roce\npreset: roce\n",
        "x.yaml:3:1: the key `preset` is written twice in the same mapping; keep one of the two",
    );
}

#[test]
fn invalid_yaml_is_refused() {
    refuse(
        "ports: [1, 2\nfdb: 3\n",
        "x.yaml:2:4: not valid YAML: illegal placement of ':' indicator; check indentation, colons, quotes and brackets here and just before",
    );
    refuse("ports:\n\t- a\n", "x.yaml:2:2: not valid YAML: a tab in the indentation; write spaces");
    refuse("a: *nowhere\n", "x.yaml:1:4: this alias has no anchor; write `&name` before the value it means");
    refuse(
        "ports: []\n---\nports: []\n",
        "x.yaml:3:1: a second document begins here; a file holds one configuration, so remove the `---`",
    );
}

/// Runs on a stack as large as the program's.
#[test]
fn excessive_nesting_or_number_of_values_is_refused() {
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(refuse_too_much).unwrap();
    thread.join().unwrap();
}

fn refuse_too_much() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..8 {
        let alias = format!("*a{}", level - 1);
        laughs += &format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 9].join(", "));
    }
    let too_much = "too many values for a configuration, including those of aliases; write fewer aliases (`*name`), \
                    and `count:` for similar items";
    let too_deep = "lists and mappings are nested too deeply; close every bracket, and nest less";
    let deep = |open: &str, close: &str| format!("a: {}x{}\n", open.repeat(100), close.repeat(100));
    let aliases = format!("a: &a 1\nb: [{}]\n", ["*a"; 20_000].join(", "));
    for (text, expected) in [
        (laughs, too_much),
        (aliases, too_much),
        (format!("a: [{}]\n", ["x"; 260_000].join(", ")), too_much),
        (deep("[", "]"), too_deep),
        (deep("{a: ", "}"), too_deep),
        ("[".repeat(100_000), too_deep),
        ("- ".repeat(100_000), too_deep),
    ] {
        let errors = holdfast::config::parse("x.yaml", &text).unwrap_err().to_string();
        let (place, message) = errors.split_once(": ").unwrap();
        assert!(place.starts_with("x.yaml:") && message == expected, "{errors}");
    }
}

#[test]
fn empty_configuration_is_refused() {
    refuse("", "x.yaml:1:1: the configuration is empty; write at least `preset: roce` and `ports:`");
    refuse("# only a comment\n", "x.yaml:1:1: the configuration is empty; write at least `preset: roce` and `ports:`");
}

/// A value in a natural but wrong form: the error names what was probably meant.
#[test]
fn natural_wrong_forms_are_refused_with_what_was_meant() {
    for (port, meant) in [
        ("speed: 10g", "did you mean `10G`?"),
        ("speed: 10Gbit", "did you mean `10G`?"),
        ("speed: 10G, cable: 5 metres", "did you mean `5m`?"),
        ("speed: 10G, mtu: \"9,000\"", "did you mean `9000`?"),
        ("speed: 10G, vlan: [10, 20]", "`[10, 20]` is not a VLAN; tagged ones are written as `{tagged: [10, 20]}`"),
        ("speed: 10G, trust: DSCP", "did you mean `dscp`?"),
        ("speed: 10G, pfc: no", "did you mean `off`?"),
        ("speed: 10G, MTU: 9000", "did you mean `mtu`?"),
        ("speed: 10G, mac: 0248.4600.0001", "did you mean `02:48:46:00:00:01`?"),
        ("speed: 10G, stuck_after: 500 msec", "did you mean `500ms`?"),
    ] {
        let text = format!("ports: [{{name: p1, device: net_tap0, {port}}}]\n");
        let error = config::parse("x.yaml", &text).expect_err("it is refused").to_string();
        assert!(error.contains(meant), "{port}: {error}");
    }
    for (section, meant) in [
        ("buffer: {size: 12mib}", "did you mean `12MiB`?"),
        ("classes: {3: {lossless: Yes}}", "did you mean `true`?"),
        ("classes: {3: {alpha: 0.25}}", "did you mean `1/4`?"),
        ("lcores: {backlog_xoff: true}", "did you mean `on`?"),
        ("fdb: {ageing: 5 minutes}", "did you mean `5min`?"),
        ("api: {writes: on}", "did you mean `true`?"),
    ] {
        let text = format!("ports: [{{name: p1, device: net_tap0, speed: 10G}}]\n{section}\n");
        let error = config::parse("x.yaml", &text).expect_err("it is refused").to_string();
        assert!(error.contains(meant), "{section}: {error}");
    }
}

#[test]
fn value_of_wrong_type_is_refused() {
    refuse(
        "ports: 5\n",
        "x.yaml:1:8: ports: `5` is not a list; write `- {name: p1, device: ring, speed: 10G}` for each port",
    );
    refuse("- 1\n- 2\n", "x.yaml:1:1: `[...]` is not a mapping; write keys such as `preset:`");
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: [10G]}]\n",
        "x.yaml:1:45: ports[0].speed: `[...]` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s; did you mean \
         `10G`?",
    );
    refuse_beside_ports(
        "classes: {3: lossless}\n",
        "x.yaml:4:14: classes.3: `lossless` is not a mapping; write keys such as `lossless:`",
    );
    refuse_beside_ports(
        "classes: {3: {lossless: maybe}}\n",
        "x.yaml:4:25: classes.3.lossless: `maybe` is not one of the choices; write `true` or `false`",
    );
}

#[test]
fn number_out_of_range_is_refused() {
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 10G, mtu: 20000}]\n",
        "x.yaml:1:55: ports[0].mtu: `20000` is not an MTU; write a whole number from 256 to 9600",
    );
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 10G, vlan: 4095}]\n",
        "x.yaml:1:56: ports[0].vlan: `4095` is not a VLAN; write a whole number from 1 to 4094",
    );
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 1M}]\n",
        "x.yaml:1:45: ports[0].speed: `1M` is not a port speed; write from 10M to 800G",
    );
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 1G, rx_descriptors: 1000}]\n",
        "x.yaml:1:65: ports[0].rx_descriptors: `1000` is not a power of two; write e.g. 512 or 1024",
    );
    refuse_beside_ports(
        "classes: {8: {lossless: true}}\n",
        "x.yaml:4:11: classes: `8` is not a class; write a whole number from 0 to 7",
    );
    refuse_beside_ports(
        "maps: {dscp: {64: 3, 1: 9}}\n",
        "\
x.yaml:4:15: maps.dscp: `64` is not a DSCP; write a number from 0 to 63 or a range such as 0-63
x.yaml:4:25: maps.dscp.1: `9` is not a class; write a whole number from 0 to 7",
    );
}

#[test]
fn alpha_that_is_no_power_of_two_is_refused() {
    refuse_beside_ports(
        "classes: {3: {alpha: 1/3}}\n",
        "x.yaml:4:22: classes.3.alpha: `1/3` is not an alpha; write a power of two from 1/128 to 8, e.g. 1/8, 1/2, 1 or 4",
    );
}

#[test]
fn mutually_exclusive_keys_are_refused() {
    refuse_beside_ports(
        "classes: {3: {alpha: 1/4, limit: 1MiB}}\n",
        "x.yaml:4:34: classes.3.limit: `alpha` and `limit` exclude each other; keep one of the two",
    );
    refuse_beside_ports(
        "classes: {0: {headroom: 100kB}}\n",
        "x.yaml:4:25: classes.0.headroom: has no effect in a lossy class; remove it or write `lossless: true`",
    );
    refuse_beside_ports(
        "classes: {0: {lossless: true, queue_alpha: 1}}\n",
        "x.yaml:4:44: classes.0.queue_alpha: has no effect in a lossless class; remove it or write `lossless: false`",
    );
}

#[test]
fn reserves_and_pools_beyond_the_buffer_are_refused() {
    refuse_beside_ports(
        "preset: roce\nbuffer: {size: 128KiB}\n",
        "x.yaml:5:9: buffer: reserves 9.75KiB + headroom 278.28KiB exceed the buffer of 128KiB by 160.06KiB (788 cells of 208 B); write `size: 289KiB` or more, or reduce them; to reduce headroom, first change `lcores.poll_gap` of 20us (saves up to 180.37KiB), then `buffer.headroom` of independent (saves 139.14KiB with `shared-pool`), `buffer.small_packets` of 100% (saves up to 106.43KiB)",
    );
    refuse_beside_ports(
        "buffer: {size: 1MiB, lossy: 800KiB, shared: 400KiB}\n",
        "x.yaml:4:45: buffer.shared: lossy 800.1KiB + shared 400.15KiB exceed the buffer of 1MiB by 176.31KiB (868 cells of 208 B); write `size: 1201KiB` or more, or reduce them",
    );
    refuse_beside_ports(
        "classes: {0: {reserve: 8MiB}}\n",
        "x.yaml:1:1: buffer: reserves 16MiB exceed the buffer of 12MiB by 4MiB (20166 cells of 208 B); write `size: 16385KiB` or more, or reduce them",
    );
    refuse_beside_ports(
        "buffer: {size: 32GiB, cell: 64B}\n",
        "x.yaml:4:29: buffer.cell: 32GiB in cells of 64B is more than the 268435455 cells that a queue can count; write `cell: 192B` or more, or a smaller `size`",
    );
    refuse_beside_ports(
        "buffer: {size: 32GiB, cell: 128B}\n",
        "x.yaml:4:29: buffer.cell: 32GiB in cells of 128B is more than the 268435455 cells that a queue can count; write `cell: 192B` or more, or a smaller `size`",
    );
    refuse_beside_ports(
        "buffer: {lossy: 100B}\n",
        "x.yaml:4:17: buffer.lossy: the lossy pool has 208B, less than one frame (1.62KiB); enlarge the buffer, or reduce reserves and headroom",
    );
}

#[test]
fn headroom_below_one_frame_is_refused() {
    refuse_beside_ports(
        "classes: {3: {lossless: true, headroom: 1000B}}\n",
        "x.yaml:4:41: classes.3.headroom: `1000B` is less than one frame of port p2 (mtu 1500: 1522 B); write `auto` or at least 1522B",
    );
}

#[test]
fn ecn_kmax_below_kmin_or_invalid_pmax_is_refused() {
    refuse_beside_ports(
        "classes: {3: {ecn: {kmin: 400kB, kmax: 100kB, pmax: 5%}}}\n",
        "x.yaml:4:40: classes.3.ecn.kmax: `100kB` is below kmin; write kmin or more",
    );
    refuse_beside_ports(
        "classes: {3: {ecn: {kmin: 400kB, kmax: 500kB, pmax: 0.05}}}\n",
        "x.yaml:4:53: classes.3.ecn.pmax: `0.05` is not a probability; write a percentage from 0% to 100%, e.g. 1%, 0.5% or 5%",
    );
}

#[test]
fn duplicate_names_devices_and_macs_are_refused() {
    refuse(
        "\
ports:
  - {name: p1, device: \"0000:3b:00.0\", speed: 10G, mac: 02:00:00:00:00:01}
  - {name: p1, device: \"3B:00.0\", speed: 10G, mac: 02-00-00-00-00-01}
",
        "\
x.yaml:3:12: ports[1].name: `p1` is already the name of ports[0]; write another
x.yaml:3:24: ports[1].device: `0000:3b:00.0` is already the device of ports[0]; write another
x.yaml:3:52: ports[1].mac: `02:00:00:00:00:01` is already the MAC address of ports[0]; write another",
    );
    refuse(
        &format!("{RINGS}hosts: [{{name: h, port: p1}}, {{name: h, port: p1}}]\n"),
        "\
x.yaml:1:47: ports[1]: `device: ring` needs a host at its other end; write `- {name: ..., port: p2}` under `hosts`
x.yaml:2:37: hosts[1].name: `h` is already the name of hosts[0]; write another
x.yaml:2:46: hosts[1].port: port `p1` has host h already; write another port",
    );
}

#[test]
fn unknown_port_or_host_name_is_refused() {
    refuse_beside_ports(
        "fdb: {static: [{mac: 02:00:00:00:00:01, port: p3}]}\n",
        "x.yaml:4:47: fdb.static[0].port: there is no port `p3`; write `p1` or `p2`",
    );
    refuse(
        &format!("{RINGS}hosts: [{{name: left, port: p1, flows: [{{to: rigth}}]}}, {{name: right, port: p2}}]\n"),
        "x.yaml:2:45: hosts[0].flows[0].to: there is no host `rigth`; write `right` if that was meant, or `{mac: ..., ip: ...}` for a station outside the switch",
    );
}

#[test]
fn static_entry_outside_port_vlan_or_with_group_mac_is_refused() {
    refuse_beside_ports(
        "fdb: {static: [{vlan: 7, mac: 02:00:00:00:00:01, port: p1}]}\n",
        "x.yaml:4:56: fdb.static[0].port: port p1 does not carry VLAN 7; write a VLAN of the port, or another port",
    );
    refuse_beside_ports(
        "fdb: {static: [{mac: 01:00:00:00:00:01, port: p1}]}\n",
        "x.yaml:4:22: fdb.static[0].mac: `01:00:00:00:00:01` is a group address; write a station address, e.g. 02:48:46:00:00:01",
    );
}

#[test]
fn ring_without_host_and_host_on_device_port_are_refused() {
    refuse(
        RINGS,
        "\
x.yaml:1:9: ports[0]: `device: ring` needs a host at its other end; write `- {name: ..., port: p1}` under `hosts`
x.yaml:1:47: ports[1]: `device: ring` needs a host at its other end; write `- {name: ..., port: p2}` under `hosts`",
    );
    refuse_beside_ports(
        "hosts: [{name: h1, port: p1}]\n",
        "x.yaml:4:26: hosts[0].port: port `p1` is not an in-process port; write a port with `device: ring`",
    );
}

#[test]
fn trust_port_with_lossless_class_is_refused() {
    refuse(
        "preset: roce\nports: [{name: p1, device: net_tap0, speed: 10G, trust: port, class: 3}]\n",
        "x.yaml:2:9: ports[0]: class 3 of this port is lossless, and broadcast is never sent in a lossless class, so ARP fails here; write a lossy class and `trust: dscp` or `pcp`",
    );
}

#[test]
fn interface_used_by_two_ports_is_refused() {
    refuse(
        "ports:\n  - {name: a, device: 'net_tap0,iface=hf0', speed: 1G}\n  - {name: b, device: 'net_tap1,iface=hf0', speed: 1G}\n",
        "x.yaml:3:23: ports[1].device: `iface=hf0` is already the device of ports[0]; write another",
    );
}

#[test]
fn static_entries_too_many_for_fdb_capacity_are_refused() {
    let entry = |n: usize| format!("{{vlan: 1, mac: '02:00:00:00:00:{n:02x}', port: p1}}");
    let entries = (1..=9).map(entry).collect::<Vec<_>>().join(", ");
    refuse_beside_ports(
        &format!("fdb: {{capacity: 16, static: [{entries}]}}\n"),
        "x.yaml:4:29: fdb.static: 9 static entries are too many for a capacity of 16; write `capacity: 36` or more",
    );
}

#[test]
fn invalid_flows_are_refused() {
    let flow = |flow: &str| {
        format!("{RINGS}hosts:\n  - {{name: h1, port: p1}}\n  - {{name: h2, port: p2, flows: [{flow}]}}\n")
    };
    refuse(&flow("{to: h2}"), "x.yaml:4:39: hosts[1].flows[0].to: a host cannot send to itself; write another host");
    refuse(
        &flow("{to: h1, rate: 25G}"),
        "x.yaml:4:49: hosts[1].flows[0].rate: `25G` is out of range for a link of 10G; write from 1k to its speed",
    );
    refuse(
        &flow("{to: h1, frame: 1519}"),
        "x.yaml:4:50: hosts[1].flows[0].frame: `1519` is too long for port p2 (mtu 1500); write from 76 to 1514",
    );
    refuse(
        &flow("{to: h1, pattern: bursty}"),
        "x.yaml:4:52: hosts[1].flows[0].pattern: `bursty` is not a pattern; write `steady` or `{on: 1ms, off: 4ms}`",
    );
    refuse(
        &flow("{to: {mac: 02:00:00:00:00:01}}"),
        "x.yaml:4:39: hosts[1].flows[0].to: `ip` is missing; write e.g. `ip: 10.0.0.9`",
    );
}

#[test]
fn eal_arguments_that_holdfast_sets_are_refused() {
    refuse_beside_ports(
        "eal: {args: [--vdev=net_null0, -l0-3, --no-huge]}\n",
        "\
x.yaml:4:14: eal.args[0]: `--vdev=net_null0` is not allowed in `args`; name devices with `device` of each port
x.yaml:4:32: eal.args[1]: `-l0-3` is not allowed in `args`; choose CPUs with `lcores`
x.yaml:4:39: eal.args[2]: `--no-huge` is not allowed in `args`; choose memory with `eal.memory`",
    );
}

/// A reload could give a device to none of these ports.
#[test]
fn port_without_a_device_is_refused_where_it_could_get_none() {
    let ports = "ports: [{name: p1, device: none, speed: 10G}, {name: p2, device: net_null1, speed: 10G}]\n";
    let place = "x.yaml:1:28: ports[0].device: ";
    for (more, reason) in [
        ("lags: [{name: l1, ports: [p1, p2], lacp: off}]\n", "a member of a group"),
        ("mirrors: [{name: m1, ports: [p2], copy: dropped, to: {port: p1}}]\n", "a port that sends copies of mirrors"),
        ("routing: {interfaces: [{port: p1, addresses: [10.0.0.1/31]}]}\n", "a routed port"),
    ] {
        let error = format!("{place}{reason} needs a device from the start; write one, or remove `p1` there");
        refuse(&format!("{ports}{more}"), &error);
    }
}

#[test]
fn invalid_device_is_refused() {
    refuse(
        "ports: [{name: p1, device: eth0, speed: 10G}]\n",
        "x.yaml:1:28: ports[0].device: `eth0` is not a device; write a PCI address such as \"0000:3b:00.0\", a virtual device of DPDK such as \"net_tap0,iface=hf0\", \"vhost:/run/holdfast/vm1.sock\", ring or none",
    );
    refuse(
        "ports: [{name: p1, device: \"0000:3b:00.8\", speed: 10G}]\n",
        "x.yaml:1:28: ports[0].device: `0000:3b:00.8` is not a device; write a PCI address such as \"0000:3b:00.0\", a virtual device of DPDK such as \"net_tap0,iface=hf0\", \"vhost:/run/holdfast/vm1.sock\", ring or none",
    );
}

#[test]
fn metrics_address_without_port_is_refused() {
    refuse_beside_ports(
        "metrics: localhost\n",
        "x.yaml:4:10: metrics: `localhost` is not an address with a port; write e.g. 127.0.0.1:9464, 0.0.0.0:9464, [::]:9464 or off",
    );
}

#[test]
fn all_errors_are_reported_at_once() {
    refuse(
        "\
preset: rocce
ports:
  - {name: p1, device: net_tap0, speed: 10}
  - {name: p 2, device: net_tap1, speed: 10G, cable: 3}
lcores: {poll_gap: 1h}
",
        "\
x.yaml:1:9: preset: `rocce` is not one of the choices; write `roce`
x.yaml:3:41: ports[0].speed: `10` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s
x.yaml:4:12: ports[1].name: `p 2` is not a name; write up to 32 letters, digits, `_`, `-`, `.` or `/`
x.yaml:4:54: ports[1].cable: `3` is not a length; write e.g. 3m, 0.5m, 300m or 10km
x.yaml:5:20: lcores.poll_gap: `1h` is not a poll gap; write from 1ns to 10ms",
    );
}

#[test]
fn error_text_is_limited_to_twenty_errors() {
    let ports: String = (0..30).map(|n| format!("  - {{name: p{n}, device: net_null{n}, speed: x}}\n")).collect();
    let errors = config::parse("x.yaml", &format!("ports:\n{ports}")).unwrap_err();
    assert_eq!(errors.iter().count(), 30);
    assert_eq!(errors.to_string().lines().count(), 21);
    assert!(errors.to_string().ends_with("\nand 10 more"));
}

#[test]
fn too_many_ports_and_oversized_text_are_refused() {
    let ports: String = (0..65).map(|n| format!("  - {{name: p{n}, device: net_null{n}, speed: 1G}}\n")).collect();
    refuse(
        &format!("ports:\n{ports}"),
        "x.yaml:2:3: ports: 65 ports are more than the 64 that a switch can have; remove some",
    );
    refuse(&" ".repeat(2 << 20), "x.yaml:1:1: 2097152 bytes are too many for a configuration; write at most 1MiB");
}

#[test]
fn unreadable_configuration_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none.yaml");
    let error = config::load(&missing).unwrap_err().to_string();
    let expected = "cannot be read: No such file or directory; check the path and its permissions";
    assert_eq!(error, format!("{}: {expected}", missing.display()));

    let latin1 = dir.path().join("latin1.yaml");
    std::fs::write(&latin1, b"preset: roce\n# caf\xe9\n").unwrap();
    let error = config::load(&latin1).unwrap_err().to_string();
    assert_eq!(error, format!("{}:2:6: not UTF-8 text; save the file as UTF-8", latin1.display()));
}

#[test]
fn invalid_peer_response_is_refused() {
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 10G, peer_response: 2ms}]\n",
        "x.yaml:1:65: ports[0].peer_response: `2ms` is too long for a peer's response to PFC; write at most 1ms, e.g. 30us for a Holdfast switch",
    );
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 10G, peer_response: soon}]\n",
        "x.yaml:1:65: ports[0].peer_response: `soon` is not a time; write e.g. 20us, 200ms, 10s or 5min",
    );
}

#[test]
fn invalid_api_keys_are_refused() {
    refuse_beside_ports(
        "api: {socket: holdfast.sock}\n",
        "x.yaml:4:15: api.socket: `holdfast.sock` is not an absolute path of a socket; write e.g. \
         /run/holdfast/holdfast.sock, or off",
    );
    let long = format!("/{}", "x".repeat(107));
    refuse_beside_ports(
        &format!("api: {{socket: {long}}}\n"),
        "x.yaml:4:15: api.socket: 108 bytes are too many for the path of a socket; write at most 107",
    );
    refuse_beside_ports("api: {write: true}\n", "x.yaml:4:7: api: unknown key `write`; did you mean `writes`?");
}
