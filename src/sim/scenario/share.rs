//! Shares written as percentages, in millionths.

const WHOLE: u32 = 1_000_000;

/// Reads a percentage of at most four decimals, from 0.0001% to 100%.
pub fn per_million(text: &str) -> Option<u32> {
    let number = text.trim().strip_suffix('%')?.trim_end();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 4 || !is_number(whole) || !is_number(decimals) {
        return None;
    }
    let parts: u32 = format!("{whole}{decimals:0<4}").parse().ok()?;
    (1..=WHOLE).contains(&parts).then_some(parts)
}
