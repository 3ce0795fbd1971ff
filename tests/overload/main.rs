//! A switch whose core is too slow, and hosts that misbehave beside obedient ones. Cables have a length and receive
//! rings a limit, and the lab sets all times. docs/overload.md lists the results.

mod lab;
mod overload;
mod safety;
