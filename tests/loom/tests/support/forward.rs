//! The part of the crate's `forward` that the included sources use: a database of one station a bucket.

/// A forwarding database.
pub struct Fdb(usize);

impl Fdb {
    /// Entries of a bucket.
    pub const WAYS: usize = 1;

    /// A database of so many buckets; the station of bucket `n` has the number `n + 1`.
    pub fn of_buckets(buckets: usize) -> Self {
        Self(buckets)
    }

    /// Its buckets.
    pub fn buckets(&self) -> usize {
        self.0
    }

    /// The stations of a bucket.
    pub fn in_bucket(&self, bucket: usize) -> impl Iterator<Item = fdb::Sighting> {
        std::iter::once(fdb::Sighting { station: fdb::Station(bucket as u64 + 1), port: 0, age: None })
    }
}

/// Its entries.
pub mod fdb {
    /// A station.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Station(pub u64);

    impl Station {
        /// The station of a number.
        pub fn from_number(number: u64) -> Self {
            Self(number)
        }

        /// Its number.
        pub fn to_number(self) -> u64 {
            self.0
        }
    }

    /// An entry as observers see it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Sighting {
        /// The station.
        pub station: Station,
        /// Its port.
        pub port: usize,
        /// Ticks since its last frame; `None`: it does not age.
        pub age: Option<u64>,
    }
}
