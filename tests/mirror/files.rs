//! Pcapng files in tshark.

use std::path::Path;
use std::process::Command;

use holdfast::mirror::{Destination, FileConfig, Target};
use holdfast::plan::mirror::CopyCause;
use holdfast::units::Bytes;

use crate::rig::{DROPPED, Rig, TIME, copy, output, program};

fn file(path: &Path, size: u64, files: u8) -> Target {
    let to = Destination::File(FileConfig { path: path.to_owned(), size: Bytes(size), files });
    Target { name: "all".to_owned(), to }
}

/// The fields of each packet of a file, by tshark.
#[track_caller]
fn fields(path: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields"]);
    for name in names {
        command.args(["-e", name]);
    }
    let lines = output(&mut command);
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn tshark_shows_port_time_lengths_and_comment_of_each_copy() {
    let Some(_) = program("tshark", true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("all.pcapng");
    let mut rig = Rig::new(vec![file(&path, 1 << 20, 2)], None);
    rig.take(&copy(0, DROPPED, 4791), TIME);
    rig.take(&copy(0, CopyCause::Marked, 4791), TIME + 1);
    rig.take(&copy(0, CopyCause::Sampled, 5001), TIME + 2);
    rig.write_all();
    // The exporter still has the file open: a reader must not see half a packet.
    let names = ["frame.interface_name", "frame.time_epoch", "frame.len", "frame.cap_len", "frame.comment"];
    let state = "VLAN 7, class 3, priority group 3: 120 cells, shared 108 of 118, pool 40 cells free, headroom 5 cells \
                 left; queue 3: 96 of 90 cells";
    let wanted = [
        [
            "p3",
            "1795780800.123456789",
            "1446",
            "128",
            &format!("holdfast tor1: dropped queue_threshold: p3 to p1, {state}"),
        ],
        ["p3", "1795780800.123456790", "1446", "128", &format!("holdfast tor1: marked with CE: p3 to p1, {state}")],
        ["p3", "1795780800.123456791", "1446", "128", "holdfast tor1: sampled: p3, VLAN 7, class 3"],
    ];
    assert_eq!(fields(&path, &names), wanted);
    let names = ["frame.packet_flags_direction", "vlan.id", "udp.dstport"];
    assert_eq!(
        fields(&path, &names),
        [["0x00000001", "7", "4791"], ["0x00000001", "7", "4791"], ["0x00000001", "7", "5001"]]
    );
}

#[test]
fn tshark_reads_all_files_of_a_rotation() {
    const PACKETS: u16 = 60;
    let Some(_) = program("tshark", true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("all.pcapng");
    let mut rig = Rig::new(vec![file(&path, 4000, 4)], None);
    for at in 0..PACKETS {
        rig.take(&copy(0, DROPPED, at), TIME + u64::from(at));
    }
    rig.write_all();
    let mut ports = Vec::new();
    for age in ["", ".1", ".2", ".3"] {
        let path = directory.path().join(format!("all.pcapng{age}"));
        let read = fields(&path, &["udp.dstport", "frame.interface_name"]);
        assert!(read.len() > 3 && read.iter().all(|packet| packet[1] == "p3"), "{read:?}");
        ports.splice(0..0, read.into_iter().map(|mut packet| packet.remove(0).parse::<u16>().unwrap()));
    }
    assert_eq!(ports, (PACKETS - ports.len() as u16..PACKETS).collect::<Vec<_>>(), "the newest packets, in order");
}
