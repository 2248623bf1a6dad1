//! How fast records are hashed: `cargo run --release -p weir-rules --example digest_speed`.
//!
//! Prints MB/s of record text for keys in order and out of order, with and without pointers, and of SHA-256
//! alone as the ceiling.

use std::hint::black_box;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use weir_rules::canonical::{CanonicalError, Digester};
use weir_rules::json_pointer::PointerError;

const RECORDS: usize = 1000;
/// The fastest counts: the machine does other things too.
const ROUNDS: usize = 500;

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Pointer(#[from] PointerError),
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

fn main() -> Result<(), Failed> {
    let unordered: Vec<String> = (0..RECORDS).map(|n| record(n, false)).collect();
    let ordered: Vec<String> = (0..RECORDS).map(|n| record(n, true)).collect();
    let volatile = ["/votes".to_owned(), "/customer/last_seen".to_owned()];
    let required = ["/id".to_owned(), "/updated_at".to_owned()];

    let mut plain = Digester::default();
    let mut pointed = Digester::new(&volatile, &required)?;
    run("keys out of order", &unordered, |text| {
        Ok(plain.digest(text)?.hash)
    })?;
    run("keys in order", &ordered, |text| {
        Ok(plain.digest(text)?.hash)
    })?;
    run("out of order, pointers", &unordered, |text| {
        Ok(pointed.digest(text)?.hash)
    })?;
    run("canonical form alone", &unordered, |text| {
        black_box(plain.canonical(text)?);
        Ok([0; 32])
    })?;
    run("SHA-256 alone", &unordered, |text| {
        Ok(Sha256::digest(text).into())
    })
}

fn run(
    what: &str,
    records: &[String],
    mut hash: impl FnMut(&str) -> Result<[u8; 32], Failed>,
) -> Result<(), Failed> {
    let bytes: usize = records.iter().map(String::len).sum();
    let mut fastest = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for record in records {
            black_box(hash(record)?);
        }
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    let rate = bytes as f64 / 1e6 / fastest;
    let each = bytes / records.len();
    println!("{what:<24} {rate:6.0} MB/s, {each} bytes a record");
    Ok(())
}

/// A record of about 400 bytes as an orders API would send it.
fn record(n: usize, ordered: bool) -> String {
    if ordered {
        return format!(
            r#"{{"currency":"EUR","customer":{{"id":{n},"last_seen":"2031-03-04T09:{:02}:00Z","name":"Customer {n}"}},"id":"ord_{n:010}","lines":[{{"qty":2,"sku":"A-{n}","total":"19.90"}},{{"qty":1,"sku":"B-{n}","total":"5.00"}}],"note":"Leave at the door, please ring the bell twice","shipped":false,"status":"paid","tags":["web","repeat"],"total":"24.90","updated_at":"2031-03-04T10:00:00.{:03}Z","votes":{n}}}"#,
            n % 60,
            n % 1000
        );
    }
    format!(
        r#"{{"id":"ord_{n:010}","updated_at":"2031-03-04T10:00:00.{:03}Z","status":"paid","total":"24.90","currency":"EUR","votes":{n},"shipped":false,"customer":{{"id":{n},"name":"Customer {n}","last_seen":"2031-03-04T09:{:02}:00Z"}},"lines":[{{"sku":"A-{n}","qty":2,"total":"19.90"}},{{"sku":"B-{n}","qty":1,"total":"5.00"}}],"tags":["web","repeat"],"note":"Leave at the door, please ring the bell twice"}}"#,
        n % 1000,
        n % 60
    )
}
