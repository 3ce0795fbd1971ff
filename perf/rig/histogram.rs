//! A histogram of times: 64 octaves of 32 buckets each. A value is known to 3 %, and the maximum exactly.

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;

/// Counts of values in buckets of relative width.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    sum: u128,
    highest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; 64 * SUB].into_boxed_slice(), total: 0, sum: 0, highest: 0 }
    }
}

impl Histogram {
    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.highest = self.highest.max(value);
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest value.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The mean of the values.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.total.max(1) as f64
    }

    /// The value that a share of `quantile` of the values does not exceed. It is the end of a bucket, and at most the
    /// maximum.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((self.total as f64 * quantile).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return end(index).min(self.highest);
            }
        }
        self.highest
    }

    /// Number of values in the buckets above that of `value`.
    pub fn above(&self, value: u64) -> u64 {
        self.counts[bucket(value) + 1..].iter().sum()
    }

    /// The share of values that exceed the end of each non-empty bucket, as `(value, share)`, for a plot of the tail.
    pub fn tail(&self) -> Vec<(u64, f64)> {
        let mut seen = 0;
        let mut points = Vec::new();
        for (index, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            seen += count;
            points.push((end(index).min(self.highest), (self.total - seen) as f64 / self.total as f64));
        }
        points
    }

    /// Non-empty buckets: the end, at most the maximum, and the count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(index, &count)| (end(index).min(self.highest), count))
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
        self.sum += other.sum;
        self.highest = self.highest.max(other.highest);
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    let octave = (63 - (value | (SUB as u64 - 1)).leading_zeros()) - (SUB_BITS - 1);
    ((octave as usize) << SUB_BITS) + (value >> octave.saturating_sub(1)) as usize % SUB
}

/// The largest value of a bucket.
fn end(index: usize) -> u64 {
    let (octave, sub) = (index >> SUB_BITS, (index % SUB) as u64);
    match octave {
        0 => sub,
        _ => ((SUB as u64 + sub + 1) << (octave - 1)) - 1,
    }
}

/// Times of all samples, and of those during which the core was not taken away.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// All samples.
    pub all: Histogram,
    /// The samples that no theft overlapped.
    pub undisturbed: Histogram,
}

impl Samples {
    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64, is_undisturbed: bool) {
        self.all.record(value);
        if is_undisturbed {
            self.undisturbed.record(value);
        }
    }
}
