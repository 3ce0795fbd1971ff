//! A strict reader of pcapng, written from the draft.

/// A block.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    Section { application: String },
    Interface { name: String, speed: u64, resolution: u8, snap: u32 },
    Packet { port: u32, at: u64, bytes: Vec<u8>, len: u32, comment: String, is_inbound: bool, lost: u64 },
}

/// Takes `count` bytes from the front of `bytes`.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (front, remaining) =
        bytes.split_at_checked(count).ok_or_else(|| format!("{count} of {} bytes", bytes.len()))?;
    *bytes = remaining;
    Ok(front)
}

fn word(bytes: &mut &[u8]) -> Result<u32, String> {
    Ok(u32::from_le_bytes(take(bytes, 4)?.try_into().expect("four bytes")))
}

/// Bytes padded with zeros to a multiple of four.
fn padded<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], String> {
    let value = take(bytes, len)?;
    let padding = take(bytes, len.next_multiple_of(4) - len)?;
    if padding.iter().all(|byte| *byte == 0) { Ok(value) } else { Err("padding".to_owned()) }
}

/// The options at the end of a body.
fn options(body: &mut &[u8]) -> Result<Vec<(u16, Vec<u8>)>, String> {
    let mut options = Vec::new();
    loop {
        let head = word(body)?;
        let (code, len) = (head as u16, (head >> 16) as usize);
        if code == 0 {
            return if len == 0 && body.is_empty() { Ok(options) } else { Err("bytes behind the options".to_owned()) };
        }
        options.push((code, padded(body, len)?.to_vec()));
    }
}

fn option(options: &[(u16, Vec<u8>)], code: u16) -> Option<&[u8]> {
    options.iter().find(|option| option.0 == code).map(|option| &*option.1)
}

fn text(options: &[(u16, Vec<u8>)], code: u16) -> Result<String, String> {
    let bytes = option(options, code).ok_or_else(|| format!("no option {code}"))?;
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

fn number(options: &[(u16, Vec<u8>)], code: u16) -> Option<u64> {
    option(options, code).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

fn section(body: &mut &[u8]) -> Result<Block, String> {
    if word(body)? != 0x1a2b_3c4d || word(body)? != 1 || take(body, 8)? != [0xff; 8] {
        return Err("section header".to_owned());
    }
    let options = options(body)?;
    text(&options, 2)?;
    text(&options, 3)?;
    Ok(Block::Section { application: text(&options, 4)? })
}

fn interface(body: &mut &[u8]) -> Result<Block, String> {
    if word(body)? != 1 {
        return Err("link type".to_owned());
    }
    let snap = word(body)?;
    let options = options(body)?;
    let speed = number(&options, 8).ok_or("no speed")?;
    let Some(&[resolution]) = option(&options, 9) else { return Err("resolution".to_owned()) };
    Ok(Block::Interface { name: text(&options, 2)?, speed, resolution, snap })
}

fn packet(body: &mut &[u8], interfaces: usize) -> Result<Block, String> {
    let port = word(body)?;
    if port as usize >= interfaces {
        return Err(format!("interface {port} of {interfaces}"));
    }
    let at = u64::from(word(body)?) << 32 | u64::from(word(body)?);
    let (captured, len) = (word(body)?, word(body)?);
    if captured > len {
        return Err(format!("{captured} bytes of {len}"));
    }
    let bytes = padded(body, captured as usize)?.to_vec();
    let options = options(body)?;
    let is_inbound = option(&options, 2) == Some(&[1, 0, 0, 0]);
    let lost = number(&options, 4).unwrap_or_default();
    Ok(Block::Packet { port, at, bytes, len, comment: text(&options, 1)?, is_inbound, lost })
}

/// Reads a file of one section.
pub fn read(mut bytes: &[u8]) -> Result<Vec<Block>, String> {
    let (mut blocks, mut interfaces) = (Vec::new(), 0);
    while !bytes.is_empty() {
        let mut remaining = bytes;
        let (kind, len) = (word(&mut remaining)?, word(&mut remaining)? as usize);
        let block = take(&mut bytes, len)?;
        if len < 12 || len % 4 != 0 || block[len - 4..] != (len as u32).to_le_bytes() {
            return Err(format!("a block of {len} bytes"));
        }
        let body = &mut &block[8..len - 4];
        blocks.push(match (kind, blocks.len()) {
            (0x0a0d_0d0a, 0) => section(body)?,
            (1, 1..) => {
                interfaces += 1;
                interface(body)?
            }
            (6, 1..) => packet(body, interfaces)?,
            _ => return Err(format!("block {} of type {kind}", blocks.len())),
        });
    }
    Ok(blocks)
}

/// Times of the packets of a file, which must be whole.
pub fn packets(bytes: &[u8]) -> Vec<u64> {
    let blocks = read(bytes).unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(blocks.first(), Some(Block::Section { .. })), "a file begins with a section");
    blocks.iter().filter_map(|block| if let Block::Packet { at, .. } = block { Some(*at) } else { None }).collect()
}
