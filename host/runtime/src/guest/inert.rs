//! An empty WASI for toolchains that cannot build without one.
//!
//! Rust's `wasm32-wasip2`, TinyGo and others import WASI whether the program uses it or not. A connector built
//! so finds no files, no arguments, no environment and a closed standard input; its clocks stand still and its
//! random numbers are the same in every call, since a connector is a pure function; what it prints goes to the
//! log. Interfaces that exist only to reach the outside (`wasi:sockets`, `wasi:http`) are not offered at all.
//!
//! Functions are matched by name and not by version, since the versions of WASI 0.2 differ only in additions.

use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, Linker, Resource, ResourceType, Val};
use wasmtime::{Result, StoreContextMut, bail};

use super::Guest;

/// Packages that a component may import. Everything else from outside is refused when it loads.
const OFFERED: [&str; 5] = ["cli", "clocks", "filesystem", "io", "random"];

/// Bytes that a stream takes at once.
const CHUNK: u64 = 4096;

/// Is this interface (`wasi:cli/stdout@0.2.6`) part of the empty WASI?
pub(crate) fn offered(interface: &str) -> bool {
    let Some(rest) = interface.strip_prefix("wasi:") else {
        return false;
    };
    let Some((package, rest)) = rest.split_once('/') else {
        return false;
    };
    let version = rest.split_once('@').map_or("", |(_, version)| version);
    OFFERED.contains(&package) && version.starts_with("0.2.")
}

/// The state of the empty WASI in one call.
#[derive(Default)]
pub(crate) struct Inert {
    /// Random numbers handed out so far.
    drawn: u64,
    /// A line that has not been printed to its end.
    partial: Vec<u8>,
}

impl Inert {
    /// SplitMix64 from a fixed seed: spread well enough for hash maps, and the same in every call.
    fn draw(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        let mut z = self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Defines whatever the component imports of the empty WASI.
pub(crate) fn link_inert_wasi(linker: &mut Linker<Guest>, component: &Component) -> Result<()> {
    let engine = component.engine().clone();
    for (interface, import) in component.component_type().imports(&engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else {
            continue;
        };
        if !offered(interface) {
            continue;
        }
        let mut link = linker.instance(interface)?;
        let bare = interface.split('@').next().unwrap_or(interface);
        for (name, export) in instance.exports(&engine) {
            match export.ty {
                ComponentItem::Resource(_) => {
                    link.resource(name, ResourceType::host::<Handle>(), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(_) => {
                    let full = format!("{bare}#{name}");
                    link.func_new(name, move |store, ty, params, results| {
                        answer(&full, store, &ty, params, results)
                    })?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whatever a handle stands for, there is nothing behind it.
struct Handle;

fn answer(
    function: &str,
    mut store: StoreContextMut<'_, Guest>,
    ty: &ComponentFunc,
    params: &[Val],
    results: &mut [Val],
) -> Result<()> {
    let value = match function {
        "wasi:cli/environment#get-environment"
        | "wasi:cli/environment#get-arguments"
        | "wasi:filesystem/preopens#get-directories" => Val::List(Vec::new()),

        "wasi:cli/environment#initial-cwd"
        | "wasi:cli/terminal-stdin#get-terminal-stdin"
        | "wasi:cli/terminal-stdout#get-terminal-stdout"
        | "wasi:cli/terminal-stderr#get-terminal-stderr"
        | "wasi:filesystem/types#filesystem-error-code" => Val::Option(None),

        "wasi:cli/stdin#get-stdin"
        | "wasi:cli/stdout#get-stdout"
        | "wasi:cli/stderr#get-stderr"
        | "wasi:io/streams#[method]input-stream.subscribe"
        | "wasi:io/streams#[method]output-stream.subscribe"
        | "wasi:clocks/monotonic-clock#subscribe-instant"
        | "wasi:clocks/monotonic-clock#subscribe-duration" => {
            Val::Resource(Resource::<Handle>::new_own(0).try_into_resource_any(&mut store)?)
        }

        "wasi:clocks/monotonic-clock#now" => Val::U64(0),
        "wasi:clocks/monotonic-clock#resolution" => Val::U64(1),
        "wasi:clocks/wall-clock#now" | "wasi:clocks/wall-clock#resolution" => Val::Record(vec![
            ("seconds".into(), Val::U64(0)),
            ("nanoseconds".into(), Val::U32(0)),
        ]),

        "wasi:random/random#get-random-u64" | "wasi:random/insecure#get-insecure-random-u64" => {
            Val::U64(store.data_mut().inert.draw())
        }
        "wasi:random/insecure-seed#insecure-seed" => {
            let inert = &mut store.data_mut().inert;
            Val::Tuple(vec![Val::U64(inert.draw()), Val::U64(inert.draw())])
        }
        "wasi:random/random#get-random-bytes"
        | "wasi:random/insecure#get-insecure-random-bytes" => {
            let Some(Val::U64(len @ 0..=CHUNK)) = params.first() else {
                bail!("it asked for more than {CHUNK} random bytes at once");
            };
            let inert = &mut store.data_mut().inert;
            // A byte of each number is plenty for a fixed sequence.
            Val::List(
                (0..*len)
                    .map(|_| Val::U8(inert.draw().to_le_bytes()[0]))
                    .collect(),
            )
        }

        "wasi:io/streams#[method]output-stream.check-write" => ok(Some(Val::U64(CHUNK))),
        "wasi:io/streams#[method]output-stream.write"
        | "wasi:io/streams#[method]output-stream.blocking-write-and-flush" => {
            print(store.data_mut(), params.get(1));
            ok(None)
        }
        "wasi:io/streams#[method]output-stream.flush"
        | "wasi:io/streams#[method]output-stream.blocking-flush" => ok(None),
        "wasi:io/streams#[method]input-stream.read"
        | "wasi:io/streams#[method]input-stream.blocking-read"
        | "wasi:io/streams#[method]input-stream.skip"
        | "wasi:io/streams#[method]input-stream.blocking-skip" => {
            Val::Result(Err(Some(Box::new(Val::Variant("closed".into(), None)))))
        }

        "wasi:io/poll#[method]pollable.ready" => Val::Bool(true),
        "wasi:io/poll#[method]pollable.block" => return release(&mut store, params),
        "wasi:io/poll#poll" => {
            let Some(Val::List(pollables)) = params.first() else {
                bail!("poll without a list");
            };
            let all = 0..u32::try_from(pollables.len()).unwrap_or(u32::MAX);
            Val::List(all.map(Val::U32).collect())
        }

        "wasi:cli/exit#exit" | "wasi:cli/exit#exit-with-code" => bail!("it called exit"),
        _ => bail!("it called {function}, which a connector has not got"),
    };
    release(&mut store, params)?;
    give(ty, value, results)
}

/// Gives back the handles that the component lent for this call.
fn release(store: &mut StoreContextMut<'_, Guest>, params: &[Val]) -> Result<()> {
    for param in params {
        match param {
            Val::Resource(handle) => handle.resource_drop(&mut *store)?,
            Val::List(items) if matches!(items.first(), Some(Val::Resource(_))) => {
                release(store, items)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sets the result, after a check that the component expects one at all.
fn give(ty: &ComponentFunc, value: Val, results: &mut [Val]) -> Result<()> {
    match (ty.results().next(), results.first_mut()) {
        (Some(_), Some(slot)) => {
            *slot = value;
            Ok(())
        }
        _ => bail!("a WASI function of another type than WASI's"),
    }
}

fn ok(value: Option<Val>) -> Val {
    Val::Result(Ok(value.map(Box::new)))
}

/// Whole lines go to the log; the rest waits for its end.
fn print(guest: &mut Guest, bytes: Option<&Val>) {
    let Some(Val::List(bytes)) = bytes else {
        return;
    };
    for byte in bytes {
        match byte {
            Val::U8(b'\n') => {
                let line = std::mem::take(&mut guest.inert.partial);
                if !line.is_empty() {
                    guest.log.printed(&String::from_utf8_lossy(&line));
                }
            }
            // What goes beyond a line of the log is cut there.
            Val::U8(byte) if guest.inert.partial.len() <= crate::limits::MESSAGE => {
                guest.inert.partial.push(*byte);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_reach_out_is_offered() {
        assert!(offered("wasi:cli/stdout@0.2.6"));
        assert!(offered("wasi:filesystem/preopens@0.2.0"));
        assert!(!offered("wasi:sockets/tcp@0.2.6"));
        assert!(!offered("wasi:http/outgoing-handler@0.2.6"));
        assert!(!offered("wasi:cli/stdout@0.3.0"));
        assert!(!offered("wasi:cli/stdout"));
        assert!(!offered("acme:cli/stdout@0.2.0"));
    }
}
