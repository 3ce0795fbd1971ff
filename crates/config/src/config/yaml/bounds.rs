//! Values with a minimum and a maximum.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::config::yaml::read::{Fields, Item};

/// Reads a quantity within `range`.
pub fn within<T: FromStr<Err: Display> + PartialOrd + Display>(item: &Item<'_>, range: RangeInclusive<T>) -> Option<T> {
    let value = item.parse::<T>()?;
    if range.contains(&value) {
        return Some(value);
    }
    let (least, most) = range.into_inner();
    item.refuse(format!("`{}` is out of range; write from {least} to {most}", item.shown()))
}

/// Reads the quantity under `key`, if it is present and valid.
pub fn get<T: FromStr<Err: Display> + PartialOrd + Display>(
    fields: &Fields<'_>,
    key: &str,
    range: RangeInclusive<T>,
) -> Option<T> {
    within(&fields.get(key)?, range)
}

/// Reads the quantity under `key`, which must be present. `example` is a valid line.
pub fn required<T: FromStr<Err: Display> + PartialOrd + Display>(
    fields: &Fields<'_>,
    key: &str,
    example: &str,
    range: RangeInclusive<T>,
) -> Option<T> {
    within(&fields.required(key, example)?, range)
}
