//! The bodies of the fuzz targets. They are those of the property tests in `tests/tests/parsers`.

#[path = "../../tests/tests/parsers/bodies.rs"]
pub mod bodies;
#[allow(dead_code, reason = "the runtime's own tests use all of it")]
#[path = "../../host/runtime/tests/all/guest.rs"]
mod guest;
#[path = "../../tests/tests/parsers/guests.rs"]
pub mod guests;
