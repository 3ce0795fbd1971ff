//! Commands to a guest of QEMU over a virtio serial port, whose other end is a Unix socket. The guest's side is the
//! loop at the end of an `init` such as tests/rdma/init.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A guest that takes commands.
pub struct Agent {
    stream: BufReader<UnixStream>,
    requests: u64,
    patience: Duration,
}

impl Agent {
    /// Waits at `stream` until the guest takes commands. `patience` is the longest time for that, and for a command.
    pub fn connect(stream: UnixStream, patience: Duration) -> Result<Self, String> {
        stream.set_read_timeout(Some(patience)).expect("a timeout");
        let mut agent = Self { stream: BufReader::new(stream), requests: 0, patience };
        agent.wait_ready()?;
        Ok(agent)
    }

    /// Waits until the guest takes commands, also again when it restarts.
    pub fn wait_ready(&mut self) -> Result<(), String> {
        let ready = self.line()?;
        if ready == "ready" { Ok(()) } else { Err(format!("`{ready}` instead of `ready`")) }
    }

    /// Runs a shell script in the guest. Returns its status and its output, or the reason why there is none.
    pub fn run(&mut self, script: &str) -> Result<(i32, String), String> {
        self.requests += 1;
        let request = format!("{} {}\n", self.requests, hex(script.as_bytes()));
        self.stream
            .get_mut()
            .write_all(request.as_bytes())
            .map_err(|error| format!("the guest does not read: {error}"))?;
        let line = self.line()?;
        let mut words = line.split(' ');
        let number = words.next().and_then(|word| word.parse().ok());
        if number != Some(self.requests) {
            return Err(format!("the answer {line:?} to request {}", self.requests));
        }
        let status = words.next().and_then(|word| word.parse().ok()).ok_or(format!("no status in {line:?}"))?;
        Ok((status, unhex(words.next().unwrap_or_default())))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(1..) => Ok(line.trim().to_owned()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(format!("no answer of the guest within {:?}", self.patience))
            }
            ended => Err(format!("the guest ended: {ended:?}")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> String {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
