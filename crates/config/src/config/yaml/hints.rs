//! Guesses about a value in a natural but wrong form: another case, another unit, `yes` for `true`.

/// Words with one meaning each, of which a choice has one.
const SAME: [&[&str]; 2] =
    [&["true", "on", "yes", "enable", "enabled", "1"], &["false", "off", "no", "disable", "disabled", "none", "0"]];

/// Units as people write them, in lower case, and those of this program that may be meant.
const UNITS: &[(&[&str], &[&str])] = &[
    (&["k", "kbit", "kbit/s", "kbps", "kb/s", "kbits"], &["K"]),
    (&["m", "mbit", "mbit/s", "mbps", "mb/s", "mbits"], &["M"]),
    (&["g", "gbit", "gbit/s", "gbps", "gb/s", "gbits", "gig", "gbe", "ge"], &["G"]),
    (&["t", "tbit", "tbit/s", "tbps", "tb/s"], &["T"]),
    (&["b", "byte", "bytes"], &["B"]),
    (&["kb"], &["kB", "K"]),
    (&["mb"], &["MB", "M"]),
    (&["gb"], &["GB", "G"]),
    (&["kib"], &["KiB"]),
    (&["mib"], &["MiB"]),
    (&["gib"], &["GiB"]),
    (&["ns", "nsec", "nanosecond", "nanoseconds"], &["ns"]),
    (&["us", "usec", "\u{3bc}s", "microsecond", "microseconds"], &["us"]),
    (&["ms", "msec", "millisecond", "milliseconds"], &["ms"]),
    (&["s", "sec", "secs", "second", "seconds"], &["s"]),
    (&["m", "mins", "minute", "minutes"], &["min"]),
    (&["h", "hr", "hour", "hours"], &["h"]),
    (&["m", "meter", "meters", "metre", "metres"], &["m"]),
    (&["km", "kilometre", "kilometres", "kilometer", "kilometers"], &["km"]),
    (&["pps", "p/s", "packets/s", "frames/s", "fps"], &["pps"]),
    (&["kpps"], &["kpps"]),
    (&["mpps"], &["Mpps"]),
    (&["percent", "pct"], &["%"]),
];

/// Fractions as decimals, for alpha.
const FRACTIONS: [(&str, &str); 4] = [("0.5", "1/2"), ("0.25", "1/4"), ("0.125", "1/8"), ("0.0625", "1/16")];

/// The one of `words` that `text` probably means: in another case, or another word of its meaning.
pub fn word<'a>(text: &str, words: &[&'a str]) -> Option<&'a str> {
    let of = |text: &str| words.iter().copied().find(|word| word.eq_ignore_ascii_case(text));
    of(text).or_else(|| {
        let same = SAME.iter().find(|same| same.iter().any(|word| word.eq_ignore_ascii_case(text)))?;
        same.iter().find_map(|word| of(word))
    })
}

/// The text that `accepts` takes and that `text` probably means.
pub fn writing(text: &str, accepts: impl Fn(&str) -> bool) -> Option<String> {
    let text = text.trim();
    if text.len() > 40 {
        return None;
    }
    let plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(plain.len());
    let (number, unit) = plain.split_at(end);
    let unit = unit.to_lowercase();
    let meant = UNITS.iter().filter(|(written, _)| written.contains(&unit.as_str())).flat_map(|(_, meant)| *meant);
    let fraction =
        FRACTIONS.iter().filter(|(decimal, _)| *decimal == plain).map(|(_, fraction)| (*fraction).to_owned());
    let units = meant.filter(|_| !number.is_empty()).map(|unit| format!("{number}{unit}"));
    let candidates = [plain.clone(), plain.to_lowercase()].into_iter().chain(units).chain(fraction).chain(mac(&plain));
    { candidates }.find(|candidate| candidate != text && accepts(candidate))
}

/// A MAC address of any notation with colons.
fn mac(text: &str) -> Option<String> {
    let digits: Vec<char> = text.chars().filter(|c| !"-.:".contains(*c)).collect();
    let is_address = digits.len() == 12 && digits.iter().all(char::is_ascii_hexdigit);
    is_address.then(|| digits.chunks(2).map(|pair| pair.iter().collect::<String>()).collect::<Vec<_>>().join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Alpha, BitRate, Bytes, Length, Nanos, PacketRate};
    use crate::wire::MacAddr;

    fn as_a<T: std::str::FromStr>(text: &str) -> Option<String> {
        assert!(text.parse::<T>().is_err(), "{text} is valid");
        writing(text, |text| text.parse::<T>().is_ok())
    }

    #[test]
    fn quantity_in_another_unit_or_case_is_recognized() {
        for (text, meant) in
            [("10g", "10G"), ("10 gbit", "10G"), ("10GB", "10G"), ("2.5gbe", "2.5G"), ("10,000M", "10000M")]
        {
            assert_eq!(as_a::<BitRate>(text).as_deref(), Some(meant), "{text}");
        }
        for (text, meant) in [("9kb", "9kB"), ("12mib", "12MiB"), ("9216 bytes", "9216B"), ("1GIB", "1GiB")] {
            assert_eq!(as_a::<Bytes>(text).as_deref(), Some(meant), "{text}");
        }
        for (text, meant) in [("5sec", "5s"), ("5 minutes", "5min"), ("10m", "10min"), ("3US", "3us"), ("2hours", "2h")]
        {
            assert_eq!(as_a::<Nanos>(text).as_deref(), Some(meant), "{text}");
        }
        assert_eq!(as_a::<Length>("5 metres").as_deref(), Some("5m"));
        assert_eq!(as_a::<PacketRate>("500 packets/s").as_deref(), Some("500pps"));
        assert_eq!(as_a::<Alpha>("0.25").as_deref(), Some("1/4"));
        assert_eq!(as_a::<MacAddr>("0248.4600.0001").as_deref(), Some("02:48:46:00:00:01"));
        for text in ["100", "10 apples", "g", ""] {
            assert_eq!(as_a::<BitRate>(text), None, "{text}: nothing is guessed");
        }
    }

    #[test]
    fn word_in_another_case_or_of_one_meaning_is_recognized() {
        assert_eq!(word("YES", &["true", "false"]), Some("true"));
        assert_eq!(word("no", &["on", "off"]), Some("off"));
        assert_eq!(word("true", &["on", "off"]), Some("on"));
        assert_eq!(word("DSCP", &["dscp", "pcp"]), Some("dscp"));
        assert_eq!((word("yes", &["obey", "ignore"]), word("maybe", &["true", "false"])), (None, None));
    }
}
