//! Reads a trace event by event, and locates its faults.

use std::fmt;
use std::io::BufRead;

use holdfast::headroom::largest_frame;
use holdfast::plan::SwitchSpec;
use holdfast::sets::CLASSES;
use holdfast::verify::replay::{Ecn, Frame};

use super::line::{FIELDS, Field, Fields, HEADER, HEADER_ECN, Lines, split_csv, split_json};

/// A fault in a trace, with its place; the text contains the remedy.
pub struct Fault {
    pub line: u64,
    pub column: u64,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        // Control characters of the trace are escaped: a terminal would interpret them.
        self.text
            .chars()
            .try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_debug()) } else { write!(f, "{c}") })
    }
}

/// An event of a trace.
pub struct Event {
    pub time: u64,
    pub kind: TraceStep,
}

pub enum TraceStep {
    Arrive(Frame),
    Depart(Departure),
}

/// A departure. The fields besides the egress port are optional; those that are given are checked.
pub struct Departure {
    pub egress: usize,
    pub class: Option<u8>,
    port: Option<usize>,
    bytes: Option<u16>,
    ecn: Option<Ecn>,
    columns: [u64; FIELDS.len()],
}

/// Indexes of [`FIELDS`].
const TIME: usize = 0;
const EVENT: usize = 1;
const PORT: usize = 2;
const CLASS: usize = 3;
const BYTES: usize = 4;
const EGRESS: usize = 5;
const ECN: usize = 6;

/// The ECN codepoints as a trace writes them. `ect` stands for either ECT codepoint and is read as ECT(0), like a blank
/// field of an arrival.
const CODEPOINTS: [(&str, Ecn); 5] =
    [("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1), ("ect", Ecn::Ect0), ("ce", Ecn::Ce), ("not-ect", Ecn::NotEct)];

/// A column and the fault there.
type Wrong = (u64, String);

pub struct Trace<'a, R> {
    lines: Lines<R>,
    switch: &'a SwitchSpec,
    /// Known after the first line.
    form: Option<Form>,
    time: u64,
}

/// Format of the lines.
#[derive(Clone, Copy)]
enum Form {
    Json,
    /// CSV with this header.
    Csv(&'static str),
}

impl<'a, R: BufRead> Trace<'a, R> {
    pub fn new(input: R, switch: &'a SwitchSpec) -> Self {
        Self { lines: Lines::new(input), switch, form: None, time: 0 }
    }

    /// The next event; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Event>, Fault> {
        let Some(mut line) = self.lines.next()? else {
            return if self.form.is_some() { Ok(None) } else { Err(self.fault((1, no_header()))) };
        };
        let form = match self.form {
            Some(known) => known,
            None => {
                let form = form(&line).map_err(|wrong| self.fault(wrong))?;
                self.form = Some(form);
                if let Form::Csv(_) = form {
                    match self.lines.next()? {
                        Some(first) => line = first,
                        None => return Ok(None),
                    }
                }
                form
            }
        };
        let fields = match form {
            Form::Json => split_json(&line),
            Form::Csv(header) => split_csv(&line, header),
        };
        fields.and_then(|fields| self.event(&fields)).map(Some).map_err(|wrong| self.fault(wrong))
    }

    fn fault(&self, (column, text): Wrong) -> Fault {
        Fault { line: self.lines.number, column, text }
    }

    fn event(&mut self, fields: &Fields) -> Result<Event, Wrong> {
        let time = number(fields, TIME, u64::MAX)?;
        if time < self.time {
            let text = format!("time goes back from {} to {time}; sort the trace by time_ns", self.time);
            return Err((fields[TIME].column, text));
        }
        let kind = match written(fields, EVENT)? {
            "arrive" => TraceStep::Arrive(self.arrival(fields)?),
            "depart" => TraceStep::Depart(self.departure(fields)?),
            other => return Err((fields[EVENT].column, format!("`{other}` is not an event; write arrive or depart"))),
        };
        self.time = time;
        Ok(Event { time, kind })
    }

    fn arrival(&self, fields: &Fields) -> Result<Frame, Wrong> {
        let (port, class) = (self.port(fields, PORT)?, class(fields)?);
        let bytes = bytes(fields)?;
        let egress = self.port(fields, EGRESS)?;
        for port in [port, egress] {
            let spec = &self.switch.ports[port];
            let most = largest_frame(spec.mtu).0;
            if u64::from(bytes) > most {
                let limit = format!("{} accepts {most} (its mtu {} + 22)", spec.name, spec.mtu);
                let text = format!("{bytes} bytes are too many: {limit}; write from 1 to {most}");
                return Err((fields[BYTES].column, text));
            }
        }
        if port == egress {
            let name = &self.switch.ports[port].name;
            let text = format!("{name} is also the ingress port, and frames never leave by it; write another port");
            return Err((fields[EGRESS].column, text));
        }
        Ok(Frame { port, class, bytes, egress, ecn: ecn(fields)?.unwrap_or(Ecn::Ect0) })
    }

    fn departure(&self, fields: &Fields) -> Result<Departure, Wrong> {
        let is_written = |field: usize| !fields[field].text.is_empty();
        let egress = self.port(fields, EGRESS)?;
        let port = is_written(PORT).then(|| self.port(fields, PORT)).transpose()?;
        let class = is_written(CLASS).then(|| class(fields)).transpose()?;
        let bytes = is_written(BYTES).then(|| bytes(fields)).transpose()?;
        let columns = std::array::from_fn(|field| fields[field].column);
        let ecn = ecn(fields)?;
        Ok(Departure { egress, class, port, bytes, ecn, columns })
    }

    fn port(&self, fields: &Fields, field: usize) -> Result<usize, Wrong> {
        let name = written(fields, field)?;
        let ports = &self.switch.ports;
        ports.iter().position(|port| port.name == name).ok_or_else(|| {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            (fields[field].column, format!("there is no port `{name}`; write one of {}", names.join(", ")))
        })
    }

    /// Checks that `waiting`, the next frame to leave, matches the fields of the departure.
    pub fn check_departure(&self, departure: &Departure, waiting: Option<Frame>) -> Result<(), Fault> {
        let Some(frame) = waiting else { return Err(self.nothing_waits(departure)) };
        let name = |port: usize| self.switch.ports[port].name.as_str();
        let differs = |field: usize, is: &dyn fmt::Display, says: &dyn fmt::Display| {
            let what = FIELDS[field];
            let text = format!("the next frame to leave {} has {what} {is}, not {says}", name(departure.egress));
            Err(self.fault((departure.columns[field], format!("{text}; write {is} or leave it blank"))))
        };
        match (departure.port, departure.class, departure.bytes) {
            (Some(port), _, _) if port != frame.port => differs(PORT, &name(frame.port), &name(port)),
            (_, Some(class), _) if class != frame.class => differs(CLASS, &frame.class, &class),
            (_, _, Some(bytes)) if bytes != frame.bytes => differs(BYTES, &frame.bytes, &bytes),
            _ => match departure.ecn {
                Some(ecn) if ecn != frame.ecn => differs(ECN, &frame.ecn.label(), &ecn.label()),
                _ => Ok(()),
            },
        }
    }

    /// The fault of a departure from an empty queue.
    pub fn nothing_waits(&self, departure: &Departure) -> Fault {
        let class = departure.class.map_or(String::new(), |class| format!(" in class {class}"));
        let egress = &self.switch.ports[departure.egress].name;
        let text =
            format!("no frame waits to leave {egress}{class}; write at most one departure for each admitted arrival");
        self.fault((departure.columns[EGRESS], text))
    }
}

/// Detects the format from the first line.
fn form(line: &str) -> Result<Form, Wrong> {
    if line.starts_with('{') {
        return Ok(Form::Json);
    }
    let header = [HEADER, HEADER_ECN].into_iter().find(|header| line.trim() == *header);
    header.map(Form::Csv).ok_or_else(|| (1, no_header()))
}

fn no_header() -> String {
    format!("the header is missing; write `{HEADER}` first, optionally with `,ecn`, or one JSON object per line")
}

/// The codepoint, if the field is not blank.
fn ecn(fields: &Fields) -> Result<Option<Ecn>, Wrong> {
    let Field { text, column } = &fields[ECN];
    if text.is_empty() {
        return Ok(None);
    }
    let known = CODEPOINTS.iter().find(|(name, _)| name == text);
    known.map(|(_, ecn)| Some(*ecn)).ok_or_else(|| {
        let text = format!("`{text}` is not an ECN codepoint; write ect0, ect1, ce or not-ect, or leave it blank");
        (*column, text)
    })
}

fn written(fields: &Fields, field: usize) -> Result<&str, Wrong> {
    let Field { text, column } = &fields[field];
    if text.is_empty() {
        return Err((*column, format!("`{}` is blank; write a value", FIELDS[field])));
    }
    Ok(text)
}

fn number(fields: &Fields, field: usize, most: u64) -> Result<u64, Wrong> {
    let text = written(fields, field)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number <= most).ok_or_else(|| {
        let remedy = format!("write a whole number up to {most}");
        (fields[field].column, format!("`{text}` is not a number for {}; {remedy}", FIELDS[field]))
    })
}

fn class(fields: &Fields) -> Result<u8, Wrong> {
    let most = CLASSES as u64 - 1;
    let text = written(fields, CLASS)?;
    let class = text.parse().ok().filter(|&class: &u8| u64::from(class) <= most && !text.starts_with('+'));
    class.ok_or_else(|| (fields[CLASS].column, format!("`{text}` is not a class; write from 0 to {most}")))
}

fn bytes(fields: &Fields) -> Result<u16, Wrong> {
    match number(fields, BYTES, u64::from(u16::MAX))? {
        0 => Err((
            fields[BYTES].column,
            "a frame cannot have 0 bytes; write its length without the frame check sequence".to_owned(),
        )),
        bytes => Ok(bytes as u16),
    }
}
