//! Framing: the messages of a datagram, answers of the kernel, and requests.

use std::io;

use netlink_packet_core::{
    DecodeError, Emitable, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_OVERRUN,
    NetlinkBuffer, NetlinkHeader, NlasIterator, parse_i32, parse_string,
};

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// `NLMSGERR_ATTR_MSG`: the reason of an error, in words.
const ERROR_TEXT: u16 = 1;

/// A message with its header's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawMessage<'a> {
    /// Type.
    pub kind: u16,
    /// Flags.
    pub flags: u16,
    /// Sequence number of the request that it answers.
    pub sequence: u32,
    /// Port of the socket whose request it answers or that has caused it; 0 is the kernel.
    pub port: u32,
    /// Content.
    pub payload: &'a [u8],
}

/// Meaning of a message for a request.
#[derive(Debug)]
pub enum Answer {
    /// An entry.
    Entry,
    /// The request has ended, by success or an error.
    End(Result<(), Refusal>),
    /// The kernel has lost messages.
    Overrun,
}

/// An error code of the kernel, and its reason in words.
#[derive(Debug)]
pub struct Refusal {
    /// The error code.
    pub error: io::Error,
    /// The reason after a colon, or nothing.
    pub detail: String,
}

impl<'a> RawMessage<'a> {
    /// Meaning of the message for the request that it answers.
    pub fn answer(&self) -> Answer {
        match self.kind {
            NLMSG_ERROR | NLMSG_DONE => Answer::End(self.outcome()),
            NLMSG_OVERRUN => Answer::Overrun,
            _ => Answer::Entry,
        }
    }

    /// Whether the kernel's table has changed during the dump to which the message belongs.
    pub fn is_interrupted(&self) -> bool {
        self.flags & NLM_F_DUMP_INTR != 0
    }

    /// Both kinds of an end begin with a negative error code; 0 or nothing is success.
    fn outcome(&self) -> Result<(), Refusal> {
        let code = self.payload.get(..4).and_then(|bytes| parse_i32(bytes).ok()).unwrap_or(0);
        if code >= 0 {
            return Ok(());
        }
        let text = self.error_text().map(|text| format!(": {text}")).unwrap_or_default();
        Err(Refusal { error: io::Error::from_raw_os_error(code.saturating_neg()), detail: text })
    }

    /// The attributes follow the code and, in an error, the header of the request with or without its content.
    fn error_text(&self) -> Option<String> {
        if self.flags & NLM_F_ACK_TLVS == 0 {
            return None;
        }
        let remaining = self.payload.get(4..)?;
        let attributes = if self.kind == NLMSG_DONE {
            remaining
        } else if self.flags & NLM_F_CAPPED != 0 {
            remaining.get(HEADER..)?
        } else {
            let length = u32::from_ne_bytes(remaining.get(..4)?.try_into().ok()?);
            remaining.get(usize::try_from(length).ok()?.checked_next_multiple_of(4)?..)?
        };
        let mut attributes = NlasIterator::new(attributes).map_while(Result::ok);
        let text = attributes.find(|attribute| attribute.kind() == ERROR_TEXT)?;
        parse_string(text.value()).ok()
    }
}

/// The messages of a datagram. A malformed header ends them with an error.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<RawMessage<'_>, DecodeError>> {
    let mut remaining = datagram;
    std::iter::from_fn(move || {
        if remaining.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut remaining);
        let buffer = match NetlinkBuffer::new_checked(bytes) {
            Ok(buffer) => buffer,
            Err(error) => return Some(Err(error)),
        };
        let length = usize::try_from(buffer.length()).unwrap_or(usize::MAX);
        let Some(payload) = bytes.get(HEADER..length) else {
            return Some(Err(DecodeError::from("netlink message shorter than its header")));
        };
        remaining = length.checked_next_multiple_of(4).and_then(|next| bytes.get(next..)).unwrap_or_default();
        Some(Ok(RawMessage {
            kind: buffer.message_type(),
            flags: buffer.flags(),
            sequence: buffer.sequence_number(),
            port: buffer.port_number(),
            payload,
        }))
    })
}

/// The bytes of a request.
pub fn request(kind: u16, flags: u16, sequence: u32, content: &impl Emitable) -> Vec<u8> {
    let length = HEADER + content.buffer_len();
    let mut header = NetlinkHeader::default();
    header.length = u32::try_from(length).unwrap_or(u32::MAX);
    header.message_type = kind;
    header.flags = flags;
    header.sequence_number = sequence;
    let mut bytes = vec![0; length];
    header.emit(&mut bytes);
    content.emit(&mut bytes[HEADER..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of type `kind` with these flags and content.
    fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..4].copy_from_slice(&u32::try_from(HEADER + payload.len()).unwrap().to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn datagram_is_split_at_aligned_lengths() {
        let mut datagram = message(16, 0, &[1, 2, 3]);
        datagram.push(0);
        datagram.extend(message(24, 2, &[]));
        let found: Vec<_> =
            messages(&datagram).map(|message| message.map(|found| (found.kind, found.payload))).collect();
        assert!(matches!(found.as_slice(), [Ok((16, [1, 2, 3])), Ok((24, []))]), "{found:?}");
    }

    #[test]
    fn truncated_message_ends_the_datagram_with_an_error() {
        let mut datagram = message(16, 0, &[]);
        datagram.extend(&message(24, 2, &[0; 8])[..20]);
        let found: Vec<_> = messages(&datagram).map(|message| message.map(|found| found.kind).ok()).collect();
        assert_eq!(found, [Some(16), None]);
        let found: Vec<_> = messages(&[0; 16]).map(|message| message.is_ok()).collect();
        assert_eq!(found, [false], "a length of 0 would never end");
    }

    #[test]
    fn error_carries_code_and_text_of_the_kernel() {
        let mut payload = (-22_i32).to_ne_bytes().to_vec();
        payload.extend([0; HEADER]);
        payload.extend([8, 0, 1, 0, b'b', b'a', b'd', 0]);
        let bytes = message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, &payload);
        let message = messages(&bytes).next().unwrap().unwrap();
        let Answer::End(Err(refusal)) = message.answer() else { panic!("{message:?}") };
        assert_eq!((refusal.error.raw_os_error(), refusal.detail.as_str()), (Some(22), ": bad"));
    }

    #[test]
    fn acknowledgement_is_a_success() {
        let bytes = message(NLMSG_ERROR, 0, &[0; 20]);
        let message = messages(&bytes).next().unwrap().unwrap();
        assert!(matches!(message.answer(), Answer::End(Ok(()))));
    }
}
