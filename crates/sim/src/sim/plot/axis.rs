//! Axes: round ticks, units that keep numbers short, and lines with no more points than pixels.

use crate::text::format::grouped;

/// Returns about `about` ticks from zero to `most`, at 1, 2 or 5 times a power of ten: position and label.
pub fn ticks(most: f64, about: u32) -> Vec<(f64, String)> {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let rough = most / f64::from(about.max(1));
    let (mut scale, mut decimals) = (1.0, 0_usize);
    while scale > rough && decimals < 12 {
        scale /= 10.0;
        decimals += 1;
    }
    while scale * 10.0 <= rough {
        scale *= 10.0;
    }
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * scale >= rough);
    if times.is_none() {
        decimals = decimals.saturating_sub(1);
    }
    let step = times.unwrap_or(10.0) * scale;
    // The factor above 1 keeps rounding from losing the last tick.
    let count = (most * 1.000_000_1 / step) as u64;
    (0..=count).map(|index| (index as f64 * step, label(index as f64 * step, decimals))).collect()
}

fn label(value: f64, decimals: usize) -> String {
    if decimals == 0 { grouped(value as u64) } else { format!("{value:.decimals$}") }
}

/// A divisor, and the unit that it gives.
pub type Unit = (f64, &'static str);

/// Returns the unit for sizes up to `most` bytes.
pub fn size_unit(most: f64) -> Unit {
    const KIB: f64 = 1024.0;
    match most {
        ..4096.0 => (1.0, "B"),
        4096.0..4_194_304.0 => (KIB, "KiB"),
        _ => (KIB * KIB, "MiB"),
    }
}

/// Returns the unit for times up to `most` picoseconds.
pub fn time_unit(most: u64) -> Unit {
    match most {
        0..10_000_000 => (1e3, "ns"),
        10_000_000..10_000_000_000 => (1e6, "us"),
        10_000_000_000..10_000_000_000_000 => (1e9, "ms"),
        _ => (1e12, "s"),
    }
}

/// Most points that a line may have before it is thinned out.
const MOST_POINTS: usize = 1000;

/// Returns at most about a thousand of `points`, including the lowest and the highest of each stretch: plots must show
/// the peaks.
pub fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(MOST_POINTS / 2);
    let mut kept = Vec::with_capacity(MOST_POINTS + 2);
    for part in points.chunks(stretch) {
        let (mut low, mut high) = (0, 0);
        for (index, point) in part.iter().enumerate() {
            if point.1 < part[low].1 {
                low = index;
            }
            if point.1 > part[high].1 {
                high = index;
            }
        }
        kept.push(part[low.min(high)]);
        if low != high {
            kept.push(part[low.max(high)]);
        }
    }
    kept.extend(points.last().filter(|last| kept.last() != Some(last)));
    kept
}

/// Joins spans, given as begin and end in order, whose distance is at most `apart`: too close to be told apart.
pub fn join(spans: &[(f64, f64)], apart: f64) -> Vec<(f64, f64)> {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for &(from, to) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 + apart => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(most: f64, about: u32) -> Vec<String> {
        ticks(most, about).into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn axis_ticks_are_round_numbers() {
        assert_eq!(labels(10.0, 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(2150.0, 8), ["0", "500", "1,000", "1,500", "2,000"]);
        assert_eq!(labels(0.83, 4), ["0.0", "0.5"]);
        assert_eq!(labels(0.95, 1), ["0"]);
        assert_eq!(labels(0.4, 4), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(labels(f64::NAN, 2), ["0.0", "0.5", "1.0"]);
    }

    #[test]
    fn thinned_plot_keeps_its_peaks() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), f64::from(at % 7))).collect();
        points[77_777].1 = 1e6;
        points[12_345].1 = -5.0;
        let kept = thin(&points);
        assert!(kept.len() <= 1_001, "{}", kept.len());
        assert!(kept.contains(&(77_777.0, 1e6)) && kept.contains(&(12_345.0, -5.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0), "in order");
        assert_eq!(kept.last(), points.last());
    }

    #[test]
    fn plot_joins_spans_that_touch() {
        assert_eq!(join(&[(0.0, 1.0), (1.1, 2.0), (1.2, 1.5), (3.0, 4.0)], 0.2), [(0.0, 2.0), (3.0, 4.0)]);
    }
}
