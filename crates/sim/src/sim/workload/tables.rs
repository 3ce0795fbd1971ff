//! Published distributions of flow sizes. Each table has bytes, and the share of flows up to that size in parts of its
//! last entry. Sizes between two entries are interpolated linearly.

use super::sizes::{Point, SizeCdf};

/// Bytes of a packet of the web search table.
const WEB_SEARCH_PACKET: u64 = 1460;

/// Web search (Alizadeh et al., DCTCP, SIGCOMM 2010, figure 4), as simulators of the field share it: packets, and
/// thousandths of the flows.
const WEB_SEARCH_PACKETS: [(u64, u64); 12] = [
    (1, 0),
    (6, 150),
    (13, 200),
    (19, 300),
    (33, 400),
    (53, 530),
    (133, 600),
    (667, 700),
    (1333, 800),
    (3333, 900),
    (6667, 970),
    (20000, 1000),
];

/// The web search table in bytes and millionths.
const WEB_SEARCH: [Point; 12] = {
    let mut table = [(0, 0); 12];
    let mut row = 0;
    while row < table.len() {
        let (packets, thousandths) = WEB_SEARCH_PACKETS[row];
        table[row] = (packets * WEB_SEARCH_PACKET, thousandths * 1000);
        row += 1;
    }
    table
};

/// Hadoop cluster of Facebook (Roy et al., SIGCOMM 2015), as HPCC (Li et al., SIGCOMM 2019) uses it: in parts of 10^4.
const FB_HADOOP: [Point; 20] = [
    (0, 0),
    (100, 100),
    (200, 200),
    (300, 500),
    (350, 1500),
    (400, 2000),
    (500, 3000),
    (600, 4000),
    (700, 5000),
    (1000, 6000),
    (2000, 6700),
    (7000, 7000),
    (30_000, 7200),
    (50_000, 8200),
    (80_000, 8700),
    (120_000, 9000),
    (300_000, 9500),
    (1_000_000, 9750),
    (2_000_000, 9900),
    (10_000_000, 10_000),
];

/// Distributed storage of Alibaba, collected in 2019, published with HPCC (Li et al., SIGCOMM 2019): in parts of 10^4.
const ALI_STORAGE: [Point; 9] = [
    (0, 0),
    (4000, 2293),
    (8000, 6921),
    (16_000, 8061),
    (32_000, 9047),
    (64_000, 9353),
    (128_000, 9677),
    (256_000, 9753),
    (2_000_000, 10_000),
];

/// RPCs of Google before 2008, as published with HPCC: in parts of 10^7. Homa (Montazeri et al., SIGCOMM 2018) uses a
/// similar one as W2. Of 843 entries these are all up to 512 B and three for each doubling above. The mean is 0.8 %
/// above that of all entries, and no share differs by more than 0.22 %.
const GOOGLE_RPC: [Point; 76] = [
    (0, 0),
    (3, 648_826),
    (32, 973_239),
    (36, 1_089_130),
    (40, 1_205_030),
    (46, 1_320_920),
    (53, 1_436_810),
    (64, 1_552_710),
    (70, 1_879_880),
    (77, 2_207_050),
    (85, 2_534_220),
    (96, 2_861_390),
    (110, 3_188_560),
    (128, 3_515_730),
    (137, 3_698_640),
    (146, 3_881_550),
    (158, 4_064_460),
    (171, 4_247_370),
    (186, 4_430_280),
    (205, 4_613_190),
    (228, 4_796_100),
    (256, 4_979_010),
    (268, 5_239_940),
    (282, 5_500_860),
    (296, 5_761_790),
    (313, 6_022_720),
    (331, 6_283_650),
    (352, 6_544_570),
    (375, 6_805_500),
    (402, 7_066_430),
    (433, 7_327_360),
    (469, 7_588_280),
    (512, 7_849_210),
    (652, 8_184_690),
    (843, 8_464_260),
    (1084, 8_682_730),
    (1365, 8_860_310),
    (1755, 9_012_520),
    (2234, 9_132_110),
    (2891, 9_240_830),
    (3641, 9_316_930),
    (4617, 9_415_830),
    (5906, 9_529_460),
    (7469, 9_614_680),
    (9461, 9_697_780),
    (11_995, 9_772_360),
    (15_267, 9_832_020),
    (19_297, 9_864_170),
    (24_461, 9_884_630),
    (31_013, 9_900_790),
    (39_322, 9_913_530),
    (49_692, 9_923_460),
    (62_805, 9_931_320),
    (79_171, 9_945_900),
    (99_970, 9_959_240),
    (126_844, 9_970_000),
    (160_275, 9_976_110),
    (202_176, 9_980_600),
    (255_645, 9_984_190),
    (322_153, 9_988_420),
    (407_188, 9_991_980),
    (514_206, 9_994_780),
    (650_524, 9_995_990),
    (824_156, 9_996_870),
    (1_037_854, 9_997_550),
    (1_315_863, 9_998_110),
    (1_659_327, 9_998_540),
    (2_113_675, 9_998_890),
    (2_693_059, 9_999_170),
    (3_471_660, 9_999_390),
    (4_478_791, 9_999_570),
    (5_649_438, 9_999_700),
    (7_143_054, 9_999_800),
    (9_710_291, 9_999_900),
    (13_293_619, 9_999_970),
    (15_158_197, 10_000_000),
];

/// A published distribution of flow sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Web search.
    WebSearch,
    /// Hadoop cluster.
    FbHadoop,
    /// Distributed storage.
    AliStorage,
    /// RPCs.
    GoogleRpc,
}

impl Distribution {
    /// The distributions and their names in scenarios.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("web-search", Self::WebSearch),
        ("fb-hadoop", Self::FbHadoop),
        ("ali-storage", Self::AliStorage),
        ("google-rpc", Self::GoogleRpc),
    ];

    /// Returns the distribution as a table.
    #[must_use]
    pub fn cdf(self) -> SizeCdf {
        SizeCdf::of(match self {
            Self::WebSearch => &WEB_SEARCH,
            Self::FbHadoop => &FB_HADOOP,
            Self::AliStorage => &ALI_STORAGE,
            Self::GoogleRpc => &GOOGLE_RPC,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    /// Bytes of the mean, computed from the published tables.
    const MEANS: [(Distribution, u64); 4] = [
        (Distribution::WebSearch, 1_665_283),
        (Distribution::FbHadoop, 120_421),
        (Distribution::AliStorage, 40_870),
        (Distribution::GoogleRpc, 2_916),
    ];

    #[test]
    fn means_are_those_of_the_tables() {
        for (distribution, mean) in MEANS {
            assert_eq!(distribution.cdf().mean(), mean, "{distribution:?}");
        }
    }

    /// Largest distance of the empirical from the true distribution that a million draws exceed with a probability of
    /// 10^-6: sqrt(ln(2 10^6) / 2 10^6), in millionths (Dvoretzky, Kiefer and Wolfowitz).
    const FARTHEST: u64 = 2_694;

    #[test]
    fn draws_follow_each_distribution() {
        for (number, (distribution, _)) in MEANS.into_iter().enumerate() {
            let (cdf, mut rng) = (distribution.cdf(), Rng::new(5, number as u64));
            let mut sizes: Vec<u64> = (0..1_000_000).map(|_| cdf.draw(&mut rng)).collect();
            sizes.sort_unstable();
            for &(bytes, parts) in cdf.points() {
                // Draws are rounded down, so those below the entry are the flows below it.
                let drawn = sizes.partition_point(|&size| size < bytes) as u64;
                let expected = parts * 1_000_000 / cdf.parts();
                assert!(drawn.abs_diff(expected) < FARTHEST, "{distribution:?}, {bytes}: {drawn}, {expected}");
            }
        }
    }
}
