//! The README's commands.
fn main() {}
