//! The report of `holdfast nic-check` as text and JSON.

use holdfast::control::nic_check::{CheckedPort, NicReport};
use holdfast::nic_check::{ByDevice, Held, Obeying};
use holdfast::text::table::Table;
use holdfast::units::{Bytes, Nanos};
use serde_json::{Value, json};

/// Longest response of a port, and most bytes that arrived in one and were posted.
fn worst(port: &CheckedPort) -> (Nanos, Bytes, Bytes) {
    let responses = &port.direction.responses;
    let most = |of: fn(&holdfast::nic_check::Response) -> u64| responses.iter().map(of).max().unwrap_or(0);
    (
        Nanos(most(|response| response.time.0)),
        Bytes(most(|response| response.bytes.0)),
        Bytes(most(|response| response.posted.0)),
    )
}

fn held(held: Held) -> String {
    match held {
        Held::No => "no".to_owned(),
        Held::ByItself => "yes".to_owned(),
        Held::Silent => "no data came".to_owned(),
    }
}

pub fn to_text(report: &NicReport) -> String {
    let mut text = format!("{}, DPDK {}\n", machine(), holdfast::dpdk::version());
    let how = if report.is_rate_known { "" } else { " (assumed: no driver reports it; give --rate)" };
    text += &format!("link rate {}{how}\n\n", report.rate);
    let mut table = Table::new("check | >first port | >second port");
    let mut row = |what: &str, of: &dyn Fn(&CheckedPort) -> String| {
        table.row([what.to_owned(), of(&report.ports[0]), of(&report.ports[1])]);
    };
    row("device", &|port| port.device.clone());
    row("driver", &|port| port.driver.clone());
    row("address", &|port| port.mac.to_string());
    row("own flow control", &|port| port.flow_control.label().to_owned());
    for (index, (len, _)) in report.ports[0].direction.data.iter().enumerate() {
        row(&format!("{len} B frames sent, arrived"), &|port| {
            let (_, passed) = port.direction.data[index];
            format!("{}, {}", passed.sent, passed.received)
        });
    }
    row("priorities whose PFC passes", &|port| format!("{} of 8", port.direction.pfc.len()));
    row("device obeys PAUSE itself", &|port| held(port.direction.holds[0]));
    row("device obeys PFC itself", &|port| held(port.direction.holds[1]));
    row("longest response", &|port| worst(port).0.to_string());
    let given = report.ports[0].direction.reaction;
    row(&format!("priorities that stop within {given}"), &|port| format!("{} of 8", port.direction.stops()));
    row("as a peer of a switch", &|port| port.direction.observed().label().to_owned());
    row("most bytes after PFC", &|port| worst(port).1.to_string());
    row("of them posted", &|port| worst(port).2.to_string());
    row("device received, sent", &|port| format!("{}, {}", port.counters.ipackets, port.counters.opackets));
    row("missed, no buffer, errors", &|port| {
        format!("{}, {}, {}", port.counters.imissed, port.counters.rx_nombuf, port.counters.ierrors)
    });
    text += &table.to_string();
    text.push('\n');
    for port in &report.ports {
        for fault in port.faults() {
            text += &format!("FAULT {}: {fault}\n", port.device);
        }
    }
    match &report.by_device {
        Ok(results) => {
            for (port, result) in report.ports.iter().zip(results) {
                text += &format!("`pfc: nic` at {}: longest response {}\n", port.device, result.longest());
                for fault in result.faults() {
                    text += &format!("FAULT of `pfc: nic` at {}: {fault}\n", port.device);
                }
            }
        }
        Err(reason) => text += &format!("`pfc: nic` was not tried: {reason}\n"),
    }
    text += &match report.pfc() {
        Some(form) => format!(
            "passed: write `pfc: {form}`; `pfc_proven: true` is justified for these ports with a peer that obeys PFC; a \
             running switch measures its peers as here (`holdfast show pfc`)\n"
        ),
        None => "not passed: these ports are not lossless\n".to_owned(),
    };
    text + "please send this report by the form `NIC report` of the project's issues (docs/nics.md#reports)\n"
}

/// The kernel and the version of this program, for a report that is read elsewhere.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
    format!("holdfast {}, Linux {kernel}", holdfast::build::VERSION)
}

pub fn to_json(report: &NicReport) -> Value {
    let port = |port: &CheckedPort| {
        let data: Vec<Value> = port.direction.data.iter().map(|(len, passed)| {
            json!({"frame_bytes": len, "sent": passed.sent, "received": passed.received, "damaged": passed.damaged, "late_or_twice": passed.disordered})
        }).collect();
        let responses: Vec<Value> = port
            .direction
            .responses
            .iter()
            .enumerate()
            .map(|(priority, response)| {
                json!({
                    "priority": priority, "time_ns": response.time.0, "wire_bytes": response.bytes.0,
                    "posted_wire_bytes": response.posted.0, "stopped_in_time": response.is_timely,
                    "late_frames": response.late_frames, "fault": response.fault(Obeying::Software),
                })
            })
            .collect();
        json!({
            "device": port.device, "driver": port.driver, "mac": port.mac.to_string(),
            "flow_control": port.flow_control.label(),
            "data": data,
            "pfc_priorities_passed": port.direction.pfc.iter().collect::<Vec<_>>(),
            "obeys_pause_itself": port.direction.holds[0] != Held::No,
            "obeys_pfc_itself": port.direction.holds[1] != Held::No,
            "responses": responses,
            "given_ns": port.direction.reaction.0, "observed": port.direction.observed().label(),
            "device_received_frames": port.counters.ipackets, "device_sent_frames": port.counters.opackets,
            "missed_frames": port.counters.imissed, "no_buffer_frames": port.counters.rx_nombuf,
            "receive_errors": port.counters.ierrors, "send_errors": port.counters.oerrors,
            "faults": port.faults(),
        })
    };
    let by_device = match &report.by_device {
        Ok(results) => {
            let of = |result: &ByDevice| json!({"longest_response_ns": result.longest().0, "faults": result.faults()});
            json!({"ports": results.each_ref().map(of)})
        }
        Err(reason) => json!({"not_tried": reason}),
    };
    json!({
        "rate_bps": report.rate.0, "rate_known": report.is_rate_known, "ports": report.ports.each_ref().map(port),
        "pfc_nic": by_device, "pfc": report.pfc(),
    })
}
