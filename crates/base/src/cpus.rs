//! Lists of CPUs as Linux writes them, and the CPUs that a process may use.
//!
//! ```
//! use holdfast_base::cpus::{parse_list, usable};
//!
//! // Booted with `isolcpus=2-3`, so that no process has these at first.
//! assert_eq!(usable(&parse_list("0-1"), &parse_list("2-3"), &parse_list("0-3")), [0, 1, 2, 3]);
//! ```

/// Linux's file with the CPUs that its scheduler leaves alone (`isolcpus`).
pub const ISOLATED: &str = "sys/devices/system/cpu/isolated";
/// Linux's file with the CPUs that run.
pub const ONLINE: &str = "sys/devices/system/cpu/online";

/// Reads `2-4,7` as `[2, 3, 4, 7]`; a text that is not a list (`(null)`) gives no CPUs.
#[must_use]
pub fn parse_list(text: &str) -> Vec<u16> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        if let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// Returns the CPUs that a process with an affinity mask may use: all that run, if the mask is that of process 1.
///
/// Linux takes isolated CPUs out of that mask, from which all others inherit, but lets a process go there. Any other
/// mask was chosen (taskset, `CPUAffinity=`, a cpuset), so that it is a limit.
#[must_use]
pub fn usable(mask: &[u16], isolated: &[u16], online: &[u16]) -> Vec<u16> {
    let is_inherited = online.iter().all(|cpu| mask.contains(cpu) != isolated.contains(cpu));
    if is_inherited && !online.is_empty() { online.to_vec() } else { mask.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_cpus_is_read_as_linux_writes_it() {
        assert_eq!(parse_list("2-4,7"), [2, 3, 4, 7]);
        assert_eq!(parse_list("0"), [0]);
        assert_eq!(parse_list(""), [0_u16; 0]);
        assert_eq!(parse_list("(null)"), [0_u16; 0]);
    }

    #[test]
    fn isolated_cpus_are_usable_unless_the_mask_was_chosen() {
        let online = [0, 1, 2, 3, 4];
        assert_eq!(usable(&[0, 1, 4], &[2, 3], &online), online);
        assert_eq!(usable(&[0, 1, 4], &[2, 3, 9], &online), online, "CPU 9 does not run");
        assert_eq!(usable(&[0, 3], &[2, 3], &online), [0, 3]);
        assert_eq!(usable(&[0, 1], &[2, 3], &online), [0, 1], "CPU 4 was left out");
        assert_eq!(usable(&[0, 1], &[], &online), [0, 1]);
        assert_eq!(usable(&[0, 1], &[], &[]), [0, 1], "without Linux's files");
    }
}
