//! The instruction sets for which loops over bursts are compiled, and the choice among them at start.
//!
//! One binary has every form. A form differs from the plain one by its speed only: tests compare their results.
//!
//! # Example
//!
//! ```
//! use holdfast_base::isa::Isa;
//!
//! println!("packet path: {}", Isa::detect());
//! assert_eq!(Isa::all().next(), Some(Isa::PLAIN), "every processor runs the plain form");
//! ```

use std::fmt;

/// Instruction sets of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Plain,
    Sse41,
    Avx2,
}

/// The instruction sets that this processor has, as far as a form uses them. A value above plain exists only if the
/// processor has been asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

impl Isa {
    /// The form that every processor runs.
    pub const PLAIN: Self = Self(Level::Plain);

    /// The best form for this processor.
    #[must_use]
    pub fn detect() -> Self {
        Self::all().last().unwrap_or(Self::PLAIN)
    }

    /// Every form that this processor runs, the plain one first, the best one last.
    pub fn all() -> impl Iterator<Item = Self> {
        let has = |level: &Level| match level {
            Level::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Level::Sse41 => is_x86_feature_detected!("sse4.1"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("movbe")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        };
        [Level::Plain, Level::Sse41, Level::Avx2].into_iter().filter(has).map(Self)
    }

    /// Whether the processor has SSE4.1.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn has_sse41(self) -> bool {
        self.0 != Level::Plain
    }

    /// Whether the processor has AVX2, BMI1, BMI2, MOVBE and POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn has_avx2(self) -> bool {
        self.0 == Level::Avx2
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Level::Plain => "plain",
            Level::Sse41 => "SSE4.1",
            Level::Avx2 => "AVX2",
        })
    }
}
