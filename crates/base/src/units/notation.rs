//! The notation of quantities: parsed from text and YAML, and displayed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use super::{Alpha, BitRate, Bytes, Cells, Length, Nanos, PacketRate, Probability, UnitError};

/// Splits a text such as `12.5MiB` into its number, as thousandths, and its unit.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 3 || fraction.contains('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = if fraction.is_empty() { 0 } else { format!("{fraction:0<3}").parse().ok()? };
    Some((whole.checked_mul(1000)?.checked_add(thousandths)?, unit.trim()))
}

/// Parses `number unit`, where `factor(unit)` is the number of base units in one unit. Returns `None` if the result is
/// not an integer that fits.
fn parse_scaled(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let (thousandths, unit) = split_number(text)?;
    let product = u128::from(thousandths) * u128::from(factor(unit)?);
    // A fraction of a base unit (1.0001B) is a mistake and must not be rounded away.
    if product % 1000 != 0 {
        return None;
    }
    u64::try_from(product / 1000).ok()
}

fn unit_error(value: &str, what: &'static str, remedy: &'static str) -> UnitError {
    UnitError { value: value.to_owned(), what, remedy }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit {
                "" | "B" => 1,
                "KiB" => 1 << 10,
                "MiB" => 1 << 20,
                "GiB" => 1 << 30,
                "kB" | "KB" => 1_000,
                "MB" => 1_000_000,
                "GB" => 1_000_000_000,
                _ => return None,
            })
        })
        .map(Bytes)
        .ok_or_else(|| unit_error(text, "a size in bytes", "e.g. 12MiB, 96KiB, 9216B or 4096"))
    }
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            let unit = ["bit/s", "b/s", "bps"].iter().find_map(|s| unit.strip_suffix(s)).unwrap_or(unit);
            Some(match unit {
                "k" | "K" => 1_000,
                "M" => 1_000_000,
                "G" => 1_000_000_000,
                "T" => 1_000_000_000_000,
                _ => return None,
            })
        })
        .filter(|&rate| rate > 0)
        .map(BitRate)
        .ok_or_else(|| unit_error(text, "a bit rate", "e.g. 100M, 10G, 25G, 100G or 400Gb/s"))
    }
}

impl FromStr for PacketRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit.strip_suffix("pps")? {
                "" => 1,
                "k" => 1_000,
                "M" => 1_000_000,
                _ => return None,
            })
        })
        .and_then(|rate| u32::try_from(rate).ok())
        .filter(|&rate| rate > 0)
        .map(PacketRate)
        .ok_or_else(|| unit_error(text, "a rate of packets", "e.g. 500pps, 10kpps or 1Mpps"))
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate > 0 && rate.is_multiple_of(1_000_000) => write!(f, "{}Mpps", rate / 1_000_000),
            rate if rate > 0 && rate.is_multiple_of(1_000) => write!(f, "{}kpps", rate / 1_000),
            rate => write!(f, "{rate}pps"),
        }
    }
}

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit {
                "mm" => 1,
                "cm" => 10,
                "m" => 1_000,
                "km" => 1_000_000,
                _ => return None,
            })
        })
        .map(|mm| Length { mm })
        .ok_or_else(|| unit_error(text, "a length", "e.g. 3m, 0.5m, 300m or 10km"))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit {
                "ns" => 1,
                "us" | "µs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "min" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                _ => return None,
            })
        })
        .map(Nanos)
        .ok_or_else(|| unit_error(text, "a time", "e.g. 20us, 200ms, 10s or 5min"))
    }
}

impl FromStr for Alpha {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let exponent = match text.trim() {
            "1/128" => -7,
            "1/64" => -6,
            "1/32" => -5,
            "1/16" => -4,
            "1/8" => -3,
            "1/4" => -2,
            "1/2" => -1,
            "1" => 0,
            "2" => 1,
            "4" => 2,
            "8" => 3,
            _ => {
                return Err(unit_error(text, "an alpha", "a power of two from 1/128 to 8, e.g. 1/8, 1/2, 1 or 4"));
            }
        };
        Ok(Alpha(exponent))
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || unit_error(text, "a probability", "a percentage from 0% to 100%, e.g. 1%, 0.5% or 5%");
        let (thousandths, unit) = split_number(text).ok_or_else(error)?;
        if unit != "%" || thousandths > 100_000 {
            return Err(error());
        }
        Ok(Probability(u32::try_from((thousandths << 16) / 100_000).map_err(|_| error())?))
    }
}

/// Writes `value` in the largest of `units` that keeps at most two decimals.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)], last: &str) -> fmt::Result {
    for &(factor, unit) in units {
        if value >= factor {
            let hundredths = u128::from(value) * 100 / u128::from(factor);
            let (whole, decimals) = (hundredths / 100, hundredths % 100);
            return match (decimals, decimals % 10) {
                (0, _) => write!(f, "{whole}{unit}"),
                (_, 0) => write!(f, "{whole}.{}{unit}", decimals / 10),
                _ => write!(f, "{whole}.{decimals:02}{unit}"),
            };
        }
    }
    write!(f, "{value}{last}")
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")], "B")
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(
            f,
            self.0,
            &[(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")],
            "b/s",
        )
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.mm, &[(1_000_000, "km"), (1_000, "m")], "mm")
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells", self.0)
    }
}

impl fmt::Display for Alpha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 0 { write!(f, "{}", 1 << self.0) } else { write!(f, "1/{}", 1 << self.0.unsigned_abs()) }
    }
}

/// Reads a quantity from a YAML string or number through its `FromStr`.
macro_rules! deserialize_from_str {
    ($($unit:ty => $expecting:literal),+ $(,)?) => {$(
        impl<'de> Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $unit;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$unit, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$unit, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$unit, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$unit, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    )+};
}

deserialize_from_str! {
    Bytes => "a size such as 12MiB",
    BitRate => "a bit rate such as 25G",
    Length => "a length such as 3m",
    Nanos => "a time such as 20us",
    Alpha => "an alpha such as 1/8",
    Probability => "a percentage such as 5%",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_parsed_from_text_with_a_suffix() {
        assert_eq!("12MiB".parse(), Ok(Bytes(12 << 20)));
        assert_eq!("1.5KiB".parse(), Ok(Bytes(1536)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert_eq!("25G".parse(), Ok(BitRate(25_000_000_000)));
        assert_eq!("400Gb/s".parse(), Ok(BitRate(400_000_000_000)));
        assert_eq!("0.5m".parse(), Ok(Length { mm: 500 }));
        assert_eq!("20us".parse(), Ok(Nanos(20_000)));
        assert_eq!("5%".parse(), Ok(Probability(3276)));
        assert_eq!("100%".parse(), Ok(Probability::ONE));
        assert_eq!("1/8".parse(), Ok(Alpha(-3)));
    }

    #[test]
    fn wrong_units_name_the_remedy() {
        for text in ["25Q", "", "G", "1.2345G", "-1G", "25", "0G"] {
            let error = text.parse::<BitRate>().unwrap_err();
            assert!(error.to_string().contains("write e.g. 100M"), "{error}");
        }
        assert!("3".parse::<Length>().is_err(), "a bare number has no unit");
        assert!("1/3".parse::<Alpha>().is_err());
        assert!("101%".parse::<Probability>().is_err());
        assert!("99999999999999999999GiB".parse::<Bytes>().is_err());
        assert!("0.0001KiB".parse::<Bytes>().is_err());
    }

    #[test]
    fn displayed_unit_is_parsed_back() {
        for text in ["12MiB", "1.5KiB", "17B", "25G", "3m", "20us", "1/128", "8"] {
            let shown = match text {
                t if t.ends_with('B') => t.parse::<Bytes>().unwrap().to_string(),
                t if t.ends_with('G') => t.parse::<BitRate>().unwrap().to_string(),
                t if t.ends_with('s') => t.parse::<Nanos>().unwrap().to_string(),
                t if t.ends_with('m') => t.parse::<Length>().unwrap().to_string(),
                t => t.parse::<Alpha>().unwrap().to_string(),
            };
            assert_eq!(shown, text);
        }
    }
}
