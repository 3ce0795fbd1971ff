//! Ports whose links come up after the start.

use std::time::Duration;

use crate::launch::{finish, run, start};
use crate::program::{Config, PATIENCE, run_arguments};
use crate::quiet;

/// Address of the host behind the far switch.
const STATION: &str = "02:48:46:0c:00:01";

/// A memif port connects some time after its start. Virtual hosts wait for it, so no frame is dropped as `egress_down`.
#[test]
fn virtual_hosts_wait_for_the_link_of_a_memif_port() {
    // The link must come up within the five seconds for which hosts wait.
    quiet::attempt(Duration::from_secs(1), wait_for_link);
}

fn wait_for_link() {
    if run_arguments().iter().any(|word| word == "--lcores") {
        eprintln!("skipped: two processes with two lcores each need four CPUs");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let memif = |name: &str, role: &str| {
        let socket = directory.path().join("memif.sock").display().to_string();
        format!(
            "{{name: {name}, device: \"net_memif0,role={role},id=0,socket={socket},socket-abstract=no,rsize=12\", speed: 100M, backlog_mark: off, pfc_proven: true, trust_peer: true}}"
        )
    };
    let far = Config::new(&format!(
        "preset: roce\nports:\n  - {}\n  - {{name: d, device: ring, speed: 100M}}\nhosts:\n  - {{name: receiver, port: d, mac: \"{STATION}\"}}\n",
        memif("prefetch", "server")
    ));
    let near = Config::new(&format!(
        "preset: roce\nports:\n  - {}\n  - {{name: s, device: ring, speed: 100M}}\nfdb:\n  static:\n    - {{mac: \"{STATION}\", port: far}}\n\
         hosts:\n  - name: sender\n    port: s\n    flows:\n      - {{to: {{mac: \"{STATION}\", ip: 10.0.0.9}}, kind: roce, rate: 20M}}\n",
        memif("far", "client")
    ));
    let (far, _) = start(&[&far.path(), "--duration", "0"]);
    let ended = finish(run(&[&near.path(), "--duration", "3s", "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let sent = ended.stdout.lines().find(|line| line.starts_with("sender > outside")).expect("a flow");
    assert!(sent.split_whitespace().nth(5).is_some_and(|frames| frames != "0"), "{sent}");
    assert!(!ended.stdout.contains("egress_down"), "{}", ended.stdout);
    far.signal("TERM");
    // The far switch sees its link up later than the near one. It would drop frames that it had to forward before that.
    let far = far.wait(PATIENCE);
    // Its own last LLDP frame may meet the link of the near switch, which has just ended.
    let of_others = |line: &&str| line.contains("egress_down") && line.split_whitespace().nth(2) != Some("6");
    assert_eq!(far.stdout.lines().find(of_others), None, "{}", far.stdout);
}
