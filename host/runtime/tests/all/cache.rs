//! The compile cache: faster, and never wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_runtime::{CacheStats, Limits, Runtime, RuntimeConfig, RuntimeError};

use crate::guest::Guest;

fn runtime_at(dir: &Path) -> Result<Arc<Runtime>, RuntimeError> {
    Runtime::new(RuntimeConfig {
        cache_dir: Some(dir.to_owned()),
        workers: 1,
        limits: Limits::default(),
        ..RuntimeConfig::default()
    })
}

/// A start of the host that loads one connector.
fn start(dir: &Path) -> CacheStats {
    let runtime = runtime_at(dir).unwrap();
    let connector = runtime
        .load("acme.wasm".as_ref(), &Guest::good().build())
        .unwrap();
    assert_eq!(connector.name(), "acme");
    connector.partitions("orders", "{}").unwrap().unwrap();
    runtime.cache_stats()
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == extension))
        .collect();
    paths.sort();
    paths
}

fn stats(hits: u64, compiled: u64, damaged: u64, unkept: u64) -> CacheStats {
    CacheStats {
        hits,
        compiled,
        damaged,
        unkept,
    }
}

#[test]
fn the_second_start_does_not_compile() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("deep/cache");
    assert_eq!(start(&dir), stats(0, 1, 0, 0));
    assert_eq!(start(&dir), stats(1, 0, 0, 0));
    assert_eq!(
        fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
        0o700
    );
    // Two files and no leftovers.
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
}

#[test]
fn whatever_is_damaged_is_compiled_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    start(&dir);
    let code = files(&dir, "cwasm").remove(0);
    let sum = files(&dir, "sha256").remove(0);
    let whole = fs::read(&code).unwrap();
    let middle = whole.len() / 2;

    let mut flipped = whole.clone();
    flipped[middle] ^= 1;
    for damage in [
        flipped,
        whole[..middle].to_vec(),
        Vec::new(),
        b"junk".repeat(1000),
    ] {
        fs::write(&code, damage).unwrap();
        assert_eq!(start(&dir), stats(0, 1, 1, 0));
        assert_eq!(start(&dir), stats(1, 0, 0, 0));
    }
    fs::remove_file(&sum).unwrap();
    assert_eq!(start(&dir), stats(0, 1, 1, 0));
    fs::write(&sum, "not a sum").unwrap();
    assert_eq!(start(&dir), stats(0, 1, 1, 0));
    fs::remove_file(&code).unwrap();
    assert_eq!(start(&dir), stats(0, 1, 0, 0));
}

#[test]
fn code_with_a_right_sum_that_is_none_of_wasmtimes_is_compiled_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    start(&dir);
    let junk = b"no code at all".repeat(100);
    fs::write(files(&dir, "cwasm").remove(0), &junk).unwrap();
    let sum = weir_runtime::Digest::of(&junk).to_string();
    fs::write(files(&dir, "sha256").remove(0), sum).unwrap();
    assert_eq!(start(&dir), stats(0, 1, 1, 0));
}

#[test]
fn a_link_in_the_cache_is_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    start(&dir);
    let code = files(&dir, "cwasm").remove(0);
    let elsewhere = temp.path().join("elsewhere");
    fs::rename(&code, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &code).unwrap();
    assert_eq!(start(&dir), stats(0, 1, 1, 0));
}

#[test]
fn a_directory_that_others_can_enter_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    let error = runtime_at(&dir).unwrap_err().to_string();
    assert!(
        error.contains("755") && error.contains("chmod 700"),
        "{error}"
    );

    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(runtime_at(&file), Err(RuntimeError::Cache { .. })));
}

#[test]
fn a_cache_that_cannot_be_written_costs_nothing_but_time() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    let runtime = runtime_at(&dir).unwrap();
    fs::remove_dir(&dir).unwrap();
    let loaded = runtime.load("acme.wasm".as_ref(), &Guest::good().build());
    assert_eq!(loaded.unwrap().name(), "acme");
    assert_eq!(runtime.cache_stats(), stats(0, 1, 0, 1));
}

#[test]
fn refused_files_leave_nothing_in_the_cache() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    let runtime = runtime_at(&dir).unwrap();
    let other = Guest::good().for_version("7.0.0").build();
    runtime.load("acme.wasm".as_ref(), &other).unwrap_err();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn what_a_killed_host_left_half_written_goes_after_an_hour() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    start(&dir);
    let (old, new) = (dir.join("aa-bb.cwasm.7.0"), dir.join("aa-bb.sha256.7.1"));
    let two_hours_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::create(&old)
        .unwrap()
        .set_modified(two_hours_ago)
        .unwrap();
    fs::write(&new, "").unwrap();
    fs::remove_file(files(&dir, "cwasm").remove(0)).unwrap();
    start(&dir);
    assert!(!old.exists() && new.exists());
}
