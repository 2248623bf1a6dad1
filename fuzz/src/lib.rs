//! The bodies of the fuzz targets. They are those of the property tests in `tests/tests/parsers`.

#[path = "../../tests/tests/parsers/bodies.rs"]
pub mod bodies;
