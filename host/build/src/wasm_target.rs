//! Making sure that the compiler can build for wasm32-unknown-unknown, with no step for a person where that is possible.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::BuildError;

/// What guests are built for: it has no system interface at all, and neither has a connector.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Names another toolchain for the guests alone, as rustup knows it: `+name`, or `name`.
const TOOLCHAIN_VARIABLE: &str = "WEIR_WASM_TOOLCHAIN";

/// A cargo that builds guests. Uses the target if it is installed, lets rustup install it if not, and else says what to
/// install.
///
/// # Errors
/// [`BuildError::Missing`] says what to install.
pub fn cargo() -> Result<Command, BuildError> {
    let mut cargo = Command::new("cargo");
    match std::env::var(TOOLCHAIN_VARIABLE)
        .ok()
        .filter(|name| !name.trim().is_empty())
    {
        Some(name) => {
            let plus = format!("+{}", name.trim().trim_start_matches('+'));
            if !installed(Some(&plus)) {
                return Err(BuildError::Missing(format!(
                    "{TOOLCHAIN_VARIABLE}={name}: that toolchain cannot build for {TARGET} \
                     (does `rustc {plus} --version` work?)"
                )));
            }
            cargo.arg(plus);
        }
        None => ensure()?,
    }
    // Flags for the host's processor are wrong for a guest; connectors/.cargo/config.toml has the guests' own.
    for variable in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
    ] {
        cargo.env_remove(variable);
    }
    Ok(cargo)
}

fn ensure() -> Result<(), BuildError> {
    if installed(None) {
        return Ok(());
    }
    let mut told = String::from("there is no rustup here");
    if runs("rustup", &["--version"]) {
        eprintln!("installing the compiler target {TARGET}: rustup target add {TARGET}");
        let added = Command::new("rustup")
            .args(["target", "add", TARGET])
            .status();
        if added.is_ok_and(|status| status.success()) && installed(None) {
            return Ok(());
        }
        told = format!("`rustup target add {TARGET}` failed (see above)");
    }
    Err(BuildError::Missing(format!(
        "connectors are built for {TARGET}, which this compiler cannot do yet, and {told}.\n\
         Install it once, then run this command again:\n\
         \x20 rustup          rustup target add {TARGET}\n\
         \x20 Debian, Ubuntu  apt install libstd-rust-dev-wasm32 lld   (for Debian's own rustc; it must be 1.95 or newer)\n\
         \x20 Fedora          dnf install rust-std-static-{TARGET} lld\n\
         \x20 Arch            pacman -S rust-wasm lld\n\
         \x20 Nix             rust-bin.stable.latest.default.override {{ targets = [ \"{TARGET}\" ]; }}   (rust-overlay)\n\
         A toolchain of another name that can do it is used with {TOOLCHAIN_VARIABLE}=+name."
    )))
}

/// Does the compiler have the target's standard library? It prints the folder whether or not there is one.
fn installed(toolchain: Option<&str>) -> bool {
    let rustc = match toolchain {
        Some(_) => OsString::from("rustc"),
        None => std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc")),
    };
    let output = Command::new(rustc)
        .args(toolchain)
        .args(["--print", "target-libdir", "--target", TARGET])
        .stderr(Stdio::null())
        .output();
    let Ok(output) = output else { return false };
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    std::fs::read_dir(folder).is_ok_and(|mut files| {
        files.any(|file| {
            file.is_ok_and(|file| {
                let name = file.file_name();
                let name = name.to_string_lossy();
                name.starts_with("libstd-") && name.ends_with(".rlib")
            })
        })
    })
}

fn runs(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
