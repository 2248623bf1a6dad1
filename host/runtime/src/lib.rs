//! host/runtime
