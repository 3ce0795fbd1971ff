//! Lengths of queues as a histogram of constant size: sizes that differ by less than an eighth share a bucket.

/// Buckets of each doubling.
const PARTS: u64 = 8;
/// Log2 of the doublings that a histogram covers, from [`PARTS`] bytes on: 2^40 bytes are more than any buffer.
const DOUBLINGS: u64 = 37;
const BUCKETS: usize = (PARTS * (DOUBLINGS + 1)) as usize;

/// A histogram of queue lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLengths {
    counts: Vec<u64>,
    /// Number of samples.
    pub samples: u64,
    /// Longest queue in bytes.
    pub most_bytes: u64,
}

impl Default for QueueLengths {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], samples: 0, most_bytes: 0 }
    }
}

/// Returns the bucket of a queue of `bytes`. Queues below [`PARTS`] bytes have a bucket each.
fn bucket(bytes: u64) -> usize {
    let doublings = (bytes / PARTS).checked_ilog2().map_or(0, |log| u64::from(log) + 1);
    let place = if doublings == 0 { bytes } else { doublings * PARTS + (bytes >> (doublings - 1)) - PARTS };
    (place as usize).min(BUCKETS - 1)
}

/// Returns the longest queue of a bucket, in bytes.
fn longest(bucket: usize) -> u64 {
    let (doublings, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    if doublings == 0 { part } else { ((PARTS + part + 1) << (doublings - 1)) - 1 }
}

impl QueueLengths {
    /// Adds `count` samples of queues of `bytes`.
    pub fn add(&mut self, bytes: u64, count: u64) {
        self.counts[bucket(bytes)] += count;
        self.samples += count;
        self.most_bytes = self.most_bytes.max(bytes);
    }

    /// Returns the buckets with samples, the shortest first: the longest queue in bytes, and the samples up to there.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut sum = 0;
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(move |(bucket, count)| {
            sum += count;
            (longest(bucket).min(self.most_bytes), sum)
        })
    }

    /// Returns the length that `per_mille` of a thousand samples do not exceed, to an eighth.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let wanted = u128::from(self.samples) * u128::from(per_mille);
        let mut buckets = self.cumulative();
        buckets.find(|(_, sum)| u128::from(*sum) * 1000 >= wanted).map_or(0, |(bytes, _)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        let mut before = 0;
        for bytes in (0..100_000).chain((17..40).map(|log| 1 << log)) {
            let own = bucket(bytes);
            assert!(own == before || own == before + 1 || bytes >= 100_000, "{bytes}");
            assert!(bytes <= longest(own) && longest(own) - bytes <= bytes / PARTS, "{bytes}: {}", longest(own));
            assert!(own == 0 || longest(own - 1) < bytes, "{bytes}");
            before = own;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_samples() {
        let mut lengths = QueueLengths::default();
        lengths.add(0, 900);
        lengths.add(1_000, 99);
        lengths.add(5_000_000, 1);
        assert_eq!([500, 900, 901, 999].map(|share| lengths.quantile(share)), [0, 0, 1_023, 1_023]);
        assert_eq!((lengths.quantile(1_000), lengths.samples), (5_000_000, 1_000));
        assert_eq!(lengths.cumulative().collect::<Vec<_>>(), [(0, 900), (1_023, 999), (5_000_000, 1_000)]);
        assert_eq!(QueueLengths::default().quantile(500), 0);
    }
}
