//! What `wit-bindgen` makes of `wit/connector.wit`. The rest of the crate gives these types names and manners.

#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::unimplemented, clippy::todo)]

wit_bindgen::generate!({
    world: "plugin",
    path: "../wit",
    pub_export_macro: true,
    export_macro_name: "export_guest",
    default_bindings_module: "weir_sdk::bindings",
    additional_derives: [PartialEq],
});
