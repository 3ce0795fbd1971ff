//! A trace, event by event, or the place where it is wrong.

use std::fmt;
use std::io::BufRead;

use holdfast::dataplane::SwitchSpec;
use holdfast::dataplane::replay::Frame;
use holdfast::mmu::headroom::largest_frame;
use holdfast::qos::CLASSES;

use super::line::{FIELDS, Field, HEADER, Lines, split_csv, split_json};

/// What is wrong with a trace, and where; the text has the remedy.
pub struct Fault {
    pub line: u64,
    pub column: u64,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        // A text of the trace is shown, not obeyed: it may hold line ends and what terminals take for commands.
        self.text
            .chars()
            .try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_debug()) } else { write!(f, "{c}") })
    }
}

/// An event of a trace.
pub struct Event {
    pub time: u64,
    pub kind: Kind,
}

pub enum Kind {
    Arrive(Frame),
    Depart(Departure),
}

/// A departure; what it says beside the egress port is checked, as far as it says it.
pub struct Departure {
    pub egress: usize,
    pub class: Option<u8>,
    port: Option<usize>,
    bytes: Option<u16>,
    columns: [u64; 6],
}

/// Places in [`FIELDS`].
const TIME: usize = 0;
const EVENT: usize = 1;
const PORT: usize = 2;
const CLASS: usize = 3;
const BYTES: usize = 4;
const EGRESS: usize = 5;

/// A column and what is wrong there.
type Wrong = (u64, String);

pub struct Trace<'a, R> {
    lines: Lines<R>,
    switch: &'a SwitchSpec,
    /// By the first character; not known before it.
    is_json: Option<bool>,
    time: u64,
}

impl<'a, R: BufRead> Trace<'a, R> {
    pub fn new(input: R, switch: &'a SwitchSpec) -> Self {
        Self { lines: Lines::new(input), switch, is_json: None, time: 0 }
    }

    /// The next event; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Event>, Fault> {
        let Some(mut line) = self.lines.next()? else {
            return if self.is_json.is_some() { Ok(None) } else { Err(self.fault((1, no_header()))) };
        };
        let is_json = match self.is_json {
            Some(known) => known,
            None => {
                let is_json = line.starts_with('{');
                if !is_json {
                    if line.trim() != HEADER {
                        return Err(self.fault((1, no_header())));
                    }
                    self.is_json = Some(false);
                    match self.lines.next()? {
                        Some(first) => line = first,
                        None => return Ok(None),
                    }
                }
                *self.is_json.insert(is_json)
            }
        };
        let fields = if is_json { split_json(&line) } else { split_csv(&line) };
        fields.and_then(|fields| self.event(&fields)).map(Some).map_err(|wrong| self.fault(wrong))
    }

    fn fault(&self, (column, text): Wrong) -> Fault {
        Fault { line: self.lines.number, column, text }
    }

    fn event(&mut self, fields: &[Field; 6]) -> Result<Event, Wrong> {
        let time = number(fields, TIME, u64::MAX)?;
        if time < self.time {
            let text = format!("time goes back from {} to {time}; sort the trace by time_ns", self.time);
            return Err((fields[TIME].column, text));
        }
        let kind = match written(fields, EVENT)? {
            "arrive" => Kind::Arrive(self.arrival(fields)?),
            "depart" => Kind::Depart(self.departure(fields)?),
            other => return Err((fields[EVENT].column, format!("`{other}` is no event; write arrive or depart"))),
        };
        self.time = time;
        Ok(Event { time, kind })
    }

    fn arrival(&self, fields: &[Field; 6]) -> Result<Frame, Wrong> {
        let (port, class) = (self.port(fields, PORT)?, class(fields)?);
        let bytes = bytes(fields)?;
        let egress = self.port(fields, EGRESS)?;
        for port in [port, egress] {
            let spec = &self.switch.ports[port];
            let most = largest_frame(spec.mtu).0;
            if u64::from(bytes) > most {
                let limit = format!("{} takes {most} (its mtu {} + 22)", spec.name, spec.mtu);
                let text = format!("{bytes} bytes are too many: {limit}; write from 1 to {most}");
                return Err((fields[BYTES].column, text));
            }
        }
        Ok(Frame { port, class, bytes, egress })
    }

    fn departure(&self, fields: &[Field; 6]) -> Result<Departure, Wrong> {
        let is_written = |field: usize| !fields[field].text.is_empty();
        let egress = self.port(fields, EGRESS)?;
        let port = is_written(PORT).then(|| self.port(fields, PORT)).transpose()?;
        let class = is_written(CLASS).then(|| class(fields)).transpose()?;
        let bytes = is_written(BYTES).then(|| bytes(fields)).transpose()?;
        let columns = std::array::from_fn(|field| fields[field].column);
        Ok(Departure { egress, class, port, bytes, columns })
    }

    fn port(&self, fields: &[Field; 6], field: usize) -> Result<usize, Wrong> {
        let name = written(fields, field)?;
        let ports = &self.switch.ports;
        ports.iter().position(|port| port.name == name).ok_or_else(|| {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            (fields[field].column, format!("there is no port `{name}`; write one of {}", names.join(", ")))
        })
    }

    /// That `waiting`, the frame which is next to leave, is the one the departure is about.
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
            _ => Ok(()),
        }
    }

    /// The fault of a departure from an empty queue.
    pub fn nothing_waits(&self, departure: &Departure) -> Fault {
        let class = departure.class.map_or(String::new(), |class| format!(" in class {class}"));
        let egress = &self.switch.ports[departure.egress].name;
        let text =
            format!("nothing waits to leave {egress}{class}; write a departure for each admitted arrival at most");
        self.fault((departure.columns[EGRESS], text))
    }
}

fn no_header() -> String {
    format!("the header is missing; write `{HEADER}` first, or one JSON object a line")
}

fn written(fields: &[Field; 6], field: usize) -> Result<&str, Wrong> {
    let Field { text, column } = &fields[field];
    if text.is_empty() {
        return Err((*column, format!("`{}` is blank; write it", FIELDS[field])));
    }
    Ok(text)
}

fn number(fields: &[Field; 6], field: usize, most: u64) -> Result<u64, Wrong> {
    let text = written(fields, field)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number <= most).ok_or_else(|| {
        let remedy = format!("write a whole number up to {most}");
        (fields[field].column, format!("`{text}` is not a number for {}; {remedy}", FIELDS[field]))
    })
}

fn class(fields: &[Field; 6]) -> Result<u8, Wrong> {
    let most = CLASSES as u64 - 1;
    let text = written(fields, CLASS)?;
    let class = text.parse().ok().filter(|&class: &u8| u64::from(class) <= most && !text.starts_with('+'));
    class.ok_or_else(|| (fields[CLASS].column, format!("`{text}` is not a class; write from 0 to {most}")))
}

fn bytes(fields: &[Field; 6]) -> Result<u16, Wrong> {
    match number(fields, BYTES, u64::from(u16::MAX))? {
        0 => Err((fields[BYTES].column, "a frame of 0 bytes; write its length without the check sequence".to_owned())),
        bytes => Ok(bytes as u16),
    }
}
