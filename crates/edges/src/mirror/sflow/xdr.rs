//! XDR (RFC 4506), the encoding of sFlow: big-endian words, and bytes padded to words.

/// A writer of XDR.
#[derive(Debug)]
pub struct Xdr<'a>(pub &'a mut Vec<u8>);

impl Xdr<'_> {
    /// An unsigned integer.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// A counter of 32 bits, which wraps.
    pub fn count(&mut self, value: u64) -> &mut Self {
        self.u32(value as u32)
    }

    /// An unsigned hyper integer.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// Variable-length opaque data, or a string.
    pub fn opaque(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self.0.resize(self.0.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
        self
    }

    /// A record of sFlow: its format, its length, and the fields that `fill` writes.
    pub fn record(&mut self, format: u32, fill: impl FnOnce(&mut Xdr<'_>)) -> &mut Self {
        self.u32(format).u32(0);
        let start = self.0.len();
        fill(&mut Xdr(self.0));
        let len = ((self.0.len() - start) as u32).to_be_bytes();
        self.0[start - 4..start].copy_from_slice(&len);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_their_length_and_bytes_are_padded() {
        let mut bytes = Vec::new();
        Xdr(&mut bytes).record(7, |record| {
            record.opaque(b"abcde").u64(1);
        });
        assert_eq!(bytes, *b"\0\0\0\x07\0\0\0\x14\0\0\0\x05abcde\0\0\0\0\0\0\0\0\0\0\x01");
    }
}
