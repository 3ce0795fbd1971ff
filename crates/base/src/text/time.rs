//! Times of the wall clock.

const DAY_SECONDS: u64 = 86_400;

/// Formats nanoseconds since 1970 as UTC to the second, by RFC 3339: `2026-11-30T08:05:09Z`.
#[must_use]
pub fn utc(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (year, month, day) = date(seconds / DAY_SECONDS);
    let second = seconds % DAY_SECONDS;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// Year, month and day of the Gregorian calendar, from days since 1970. Source: H. Hinnant, chrono-compatible low-level
/// date algorithms, civil_from_days.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the leap day is the last one; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_calendar() {
        let second = |seconds: u64| utc(seconds * 1_000_000_000 + 999_999_999);
        assert_eq!(second(0), "1970-01-01T00:00:00Z");
        assert_eq!(second(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(second(1_796_026_109), "2026-11-30T08:08:29Z");
        assert_eq!(second(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(second(4_107_542_400), "2100-03-01T00:00:00Z");
        // Each day follows the one before.
        let mut before = date(0);
        for days in 1..200_000 {
            let now = date(days);
            let is_next = now.2 == before.2 + 1 && (now.0, now.1) == (before.0, before.1);
            let begins_month = now.2 == 1 && before.2 >= 28 && (now.1 == before.1 + 1 || (now.1, before.1) == (1, 12));
            assert!(is_next || begins_month, "{before:?} {now:?}");
            before = now;
        }
    }
}
