//! A switch whose core is too slow, and hosts that misbehave, between obedient ones: over cables with a length and receive
//! rings that end, at instants that the lab chooses. docs/overload.md says what is proven here.

mod lab;
mod overload;
mod safety;
