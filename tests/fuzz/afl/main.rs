//! Calls the target that the first argument names with the inputs of AFL++. Without an argument it prints all names.

#[path = "../targets.rs"]
mod targets;

fn main() {
    let Some(name) = std::env::args().nth(1) else {
        return targets::TARGETS.iter().for_each(|(name, _)| println!("{name}"));
    };
    let found = targets::TARGETS.iter().find(|(target, _)| *target == name);
    let (_, target) = found.unwrap_or_else(|| panic!("there is no target {name}"));
    afl::fuzz(true, |input| target(input));
}
