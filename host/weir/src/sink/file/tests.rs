use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::store::{Op, RecordData, UnitKey};

const DAY: i64 = 24 * 3_600_000;
/// 2025-01-31, at noon.
const NOON: i64 = 1_738_324_800_000;

fn unit(stream: &str) -> Arc<UnitKey> {
    Arc::new(UnitKey {
        connection: "acme".into(),
        stream: stream.into(),
        partition: None,
    })
}

fn entry(unit: &Arc<UnitKey>, sequence: u64, seen_at: i64, data: &str) -> OutboxEntry {
    OutboxEntry {
        sequence,
        unit: unit.clone(),
        id: sequence.to_string(),
        revision: 1,
        op: Op::Insert,
        updated_at: None,
        seen_at,
        data: RecordData::Text(data.into()),
    }
}

fn entries(stream: &str, sequences: std::ops::RangeInclusive<u64>) -> Vec<OutboxEntry> {
    let unit = unit(stream);
    sequences
        .map(|sequence| entry(&unit, sequence, NOON, "{}"))
        .collect()
}

fn sink(path: PathBuf, rotation: Rotation) -> FileSink {
    let settings = FileSettings {
        rotation,
        ..FileSettings::new(path)
    };
    FileSink::new("main", settings).unwrap()
}

fn deliver(sink: &mut FileSink, batch: &[OutboxEntry]) -> Result<usize, SinkError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(sink.deliver(batch, None))
        .map(|delivered| delivered.done)
}

/// Delivers all, however many batches that takes.
fn deliver_all(sink: &mut FileSink, mut batch: &[OutboxEntry]) {
    while !batch.is_empty() {
        let done = deliver(sink, batch).unwrap();
        batch = &batch[done..];
    }
}

/// The ids in a file, in order; every line must be whole.
fn ids(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn each_stream_has_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out/{connection}/{stream}.ndjson");
    let mut batch = entries("orders", 1..=2);
    batch.extend(entries("returns", 3..=4));
    batch.extend(entries("orders", 5..=5));
    deliver_all(&mut sink(out, Rotation::default()), &batch);
    assert_eq!(
        ids(&directory.path().join("out/acme/orders.ndjson")),
        [1, 2, 5]
    );
    assert_eq!(
        ids(&directory.path().join("out/acme/returns.ndjson")),
        [3, 4]
    );
}

#[test]
fn names_of_vendors_stay_below_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory
        .path()
        .join("{connection}/{stream}/{partition}.ndjson");
    let long = "é".repeat(400);
    let partitions = [
        "..",
        "../../etc/passwd",
        "a/b",
        "",
        ".hidden",
        "_",
        "CON:",
        "a\0b\n",
        "a b",
        "größe",
        &long,
    ];
    let mut sink = sink(out, Rotation::default());
    for (sequence, partition) in (1..).zip(partitions) {
        let mut unit = (*unit("..")).clone();
        unit.partition = Some(partition.into());
        deliver_all(&mut sink, &[entry(&Arc::new(unit), sequence, NOON, "{}")]);
    }
    deliver_all(&mut sink, &[entry(&unit(".."), 99, NOON, "{}")]);
    let made = names(&directory.path().join("acme/%2E."));
    // `..` itself was not taken for a directory.
    assert_eq!(names(directory.path()), ["acme"]);
    assert_eq!(made.len(), partitions.len() + 1, "{made:?}");
    for name in [
        "%2E..ndjson",
        "a%2Fb.ndjson",
        "%00.ndjson",
        "%2Ehidden.ndjson",
        "_.ndjson",
        "%5F.ndjson",
        "größe.ndjson",
    ] {
        assert!(made.contains(&name.to_owned()), "{name} is not in {made:?}");
    }
}

#[test]
fn wrong_paths_are_refused() {
    let error = |path: &str| {
        FileSink::new("main", FileSettings::new(path))
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        error("out/{conection}.ndjson"),
        "path \"out/{conection}.ndjson\" names {conection}, which is not known: use {connection}, {stream}, {partition} or {date}"
    );
    assert!(error("out/{stream.ndjson").contains("without its other half"));
    assert!(error("out/stream}.ndjson").contains("without its other half"));
    assert!(error("out/").contains("names no file"));
    assert!(error("").contains("names no file"));
}

#[test]
fn a_batch_that_was_not_acknowledged_is_not_written_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("{stream}.ndjson");
    let mut batch = entries("orders", 1..=10);
    batch.extend(entries("returns", 11..=15));
    deliver_all(&mut sink(path.clone(), Rotation::default()), &batch[..12]);
    // A crash: the acknowledgement of 4 is the last that was stored.
    deliver_all(&mut sink(path, Rotation::default()), &batch[4..]);
    assert_eq!(
        ids(&directory.path().join("orders.ndjson")),
        (1..=10).collect::<Vec<_>>()
    );
    assert_eq!(
        ids(&directory.path().join("returns.ndjson")),
        (11..=15).collect::<Vec<_>>()
    );
}

#[test]
fn the_same_record_again_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    let first = entries("orders", 1..=1);
    let mut second = first.clone();
    second[0].revision = 2;
    deliver_all(&mut sink(path.clone(), Rotation::default()), &first);
    deliver_all(&mut sink(path.clone(), Rotation::default()), &second);
    assert_eq!(ids(&path), [1, 1]);
}

#[test]
fn a_line_that_a_crash_cut_off_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    deliver_all(
        &mut sink(path.clone(), Rotation::default()),
        &entries("orders", 1..=3),
    );
    let whole = std::fs::read(&path).unwrap();
    let two = whole.len() / 3 * 2;
    let with_zeros = [&whole[..two + 10], &[0; 500], b"\n"].concat();
    for damaged in [
        &whole[..two + 1],
        &whole[..two + 20],
        &whole[..whole.len() - 1],
        &with_zeros,
    ] {
        std::fs::write(&path, damaged).unwrap();
        deliver_all(
            &mut sink(path.clone(), Rotation::default()),
            &entries("orders", 1..=4),
        );
        assert_eq!(ids(&path), [1, 2, 3, 4]);
    }
}

#[test]
fn a_file_of_somebody_else_is_not_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    let theirs = "{\"a\":1}\n{\"setting\": true}";
    std::fs::write(&path, theirs).unwrap();
    let error = deliver(
        &mut sink(path.clone(), Rotation::default()),
        &entries("orders", 1..=1),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("orders.ndjson: ends in the middle of a line that weir did not write"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
    // Whole lines of somebody else are no obstacle.
    std::fs::write(&path, "{\"id\":\"7\"}\n").unwrap();
    deliver_all(
        &mut sink(path.clone(), Rotation::default()),
        &entries("orders", 8..=8),
    );
    assert_eq!(ids(&path), [7, 8]);
}

#[test]
fn a_full_file_is_rotated_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    let rotation = Rotation {
        bytes: Some(300),
        period: None,
    };
    let mut one = sink(path.clone(), rotation);
    for sequence in 1..=7 {
        deliver_all(&mut one, &entries("orders", sequence..=sequence));
    }
    let made = names(directory.path());
    assert_eq!(
        made,
        [
            "orders.2025-01-31.1.ndjson",
            "orders.2025-01-31.2.ndjson",
            "orders.2025-01-31.3.ndjson",
            "orders.ndjson"
        ]
    );
    let parts: Vec<Vec<u64>> = made
        .iter()
        .map(|name| ids(&directory.path().join(name)))
        .collect();
    assert_eq!(parts, [vec![1, 2], vec![3, 4], vec![5, 6], vec![7]]);
    // After a crash, with the last four not acknowledged: they are in the rotated file and in the new one.
    deliver_all(&mut sink(path.clone(), rotation), &entries("orders", 5..=8));
    assert_eq!(
        ids(&directory.path().join("orders.2025-01-31.3.ndjson")),
        [5, 6]
    );
    assert_eq!(ids(&path), [7, 8]);
}

#[test]
fn a_new_day_begins_a_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    let rotation = Rotation {
        bytes: None,
        period: Some(Period::Day),
    };
    let unit = unit("orders");
    let at = |sequence, day: i64| entry(&unit, sequence, NOON + day * DAY, "{}");
    // The fourth was seen before the third, and comes after it: it does not bring the old file back.
    let batch = [at(1, 0), at(2, 0), at(3, 1), at(4, 0), at(5, 3)];
    deliver_all(&mut sink(path.clone(), rotation), &batch[..2]);
    deliver_all(&mut sink(path.clone(), rotation), &batch[2..]);
    let parts = [
        "orders.2025-01-31.1.ndjson",
        "orders.2025-02-01.1.ndjson",
        "orders.ndjson",
    ];
    assert_eq!(names(directory.path()), parts);
    assert_eq!(
        parts.map(|name| ids(&directory.path().join(name))),
        [vec![1, 2], vec![3, 4], vec![5]]
    );
    // All again after a crash: nothing is written twice.
    deliver_all(&mut sink(path.clone(), rotation), &batch[3..]);
    assert_eq!(
        parts.map(|name| ids(&directory.path().join(name))),
        [vec![1, 2], vec![3, 4], vec![5]]
    );
}

#[test]
fn the_date_in_a_path_is_the_day_of_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("{date}/{stream}.ndjson");
    let unit = unit("orders");
    let batch = [
        entry(&unit, 1, NOON, "{}"),
        entry(&unit, 2, NOON + DAY, "{}"),
        entry(&unit, 3, NOON, "{}"),
    ];
    deliver_all(&mut sink(path.clone(), Rotation::default()), &batch);
    deliver_all(&mut sink(path, Rotation::default()), &batch);
    assert_eq!(
        ids(&directory.path().join("2025-01-31/orders.ndjson")),
        [1, 3]
    );
    assert_eq!(ids(&directory.path().join("2025-02-01/orders.ndjson")), [2]);
}

#[test]
fn a_file_that_is_taken_away_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out/orders.ndjson");
    let mut sink = sink(path.clone(), Rotation::default());
    deliver_all(&mut sink, &entries("orders", 1..=2));
    std::fs::remove_file(&path).unwrap();
    deliver_all(&mut sink, &entries("orders", 3..=4));
    assert_eq!(ids(&path), [3, 4]);
    std::fs::rename(&path, directory.path().join("moved.ndjson")).unwrap();
    deliver_all(&mut sink, &entries("orders", 5..=5));
    assert_eq!(ids(&path), [5]);
    std::fs::remove_dir_all(directory.path().join("out")).unwrap();
    deliver_all(&mut sink, &entries("orders", 6..=6));
    assert_eq!(ids(&path), [6]);
    // Emptied in place, as some log rotators do.
    std::fs::write(&path, "").unwrap();
    deliver_all(&mut sink, &entries("orders", 7..=7));
    assert_eq!(ids(&path), [7]);
}

#[test]
fn a_failure_in_one_file_doubles_nothing_in_another() {
    let directory = tempfile::tempdir().unwrap();
    let in_the_way = directory.path().join("returns.ndjson");
    std::fs::create_dir(&in_the_way).unwrap();
    let mut batch = entries("orders", 1..=3);
    batch.extend(entries("returns", 4..=6));
    let mut sink = sink(
        directory.path().join("{stream}.ndjson"),
        Rotation::default(),
    );
    for _ in 0..2 {
        let error = deliver(&mut sink, &batch).unwrap_err();
        assert!(
            error.to_string().starts_with("sink main: ")
                && error.to_string().contains("returns.ndjson"),
            "{error}"
        );
    }
    std::fs::remove_dir(&in_the_way).unwrap();
    deliver_all(&mut sink, &batch);
    assert_eq!(ids(&directory.path().join("orders.ndjson")), [1, 2, 3]);
    assert_eq!(ids(&in_the_way), [4, 5, 6]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let mut sink = sink("/dev/full".into(), Rotation::default());
    let mut files = Files::new(&sink.settings);
    files.take_for_open("/dev/full".as_ref());
    sink.files = Some(files);
    let error = deliver(&mut sink, &entries("orders", 1..=1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "sink main: /dev/full: No space left on device (os error 28)"
    );
    assert_eq!(error.remedy, crate::sink::Remedy::Backoff);
}

#[test]
fn what_is_not_a_file_is_refused() {
    for path in ["/dev/null", "/dev"] {
        let error = deliver(
            &mut sink(path.into(), Rotation::default()),
            &entries("orders", 1..=1),
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("{path}: is not a file")),
            "{error}"
        );
    }
}

#[test]
fn few_files_are_open_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let settings = FileSettings {
        max_open: 2,
        ..FileSettings::new(directory.path().join("{stream}.ndjson"))
    };
    let mut sink = FileSink::new("main", settings).unwrap();
    for sequence in 1..=12 {
        deliver_all(
            &mut sink,
            &entries(&format!("s{}", sequence % 4), sequence..=sequence),
        );
    }
    assert_eq!(ids(&directory.path().join("s1.ndjson")), [1, 5, 9]);
    assert!(sink.files.unwrap().open() <= 2);
}

#[test]
fn a_batch_is_cut_at_its_bound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    let unit = unit("orders");
    let data = format!("\"{}\"", "x".repeat(BATCH_BYTES / 4));
    let batch: Vec<OutboxEntry> = (1..=10)
        .map(|sequence| entry(&unit, sequence, NOON, &data))
        .collect();
    let mut sink = sink(path.clone(), Rotation::default());
    assert_eq!(deliver(&mut sink, &batch).unwrap(), 4);
    deliver_all(&mut sink, &batch[4..]);
    assert_eq!(ids(&path), (1..=10).collect::<Vec<_>>());
}

/// A crash while a batch is being written leaves any piece of it; one before the acknowledgement leaves all of it.
/// Whatever happens, every entry is there once and in order.
fn survives(sizes: &[usize], crashes: &[(bool, u8)], rotation: Rotation) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.ndjson");
    let unit = unit("orders");
    let all: Vec<OutboxEntry> = (1..)
        .zip(sizes)
        .map(|(sequence, size)| entry(&unit, sequence, NOON, &format!("\"{}\"", "x".repeat(*size))))
        .collect();
    let mut one = sink(path.clone(), rotation);
    let (mut acknowledged, mut taken) = (0, 0);
    let mut crashes = crashes.iter().cycle();
    let mut steps = 0;
    while taken < all.len() {
        steps += 1;
        let before = std::fs::metadata(&path).map_or(0, |file| file.len());
        let files = names(directory.path()).len();
        let end = all.len().min(taken + 1 + steps % 7);
        let done = deliver(&mut one, &all[taken..end]).unwrap();
        let (crash, at) = *crashes.next().unwrap();
        if steps > 200 || !crash {
            // The batch before this one has been acknowledged.
            acknowledged = taken;
            taken += done;
            continue;
        }
        // The batch was being written: a piece of it is there, provided that no other file was begun meanwhile.
        if names(directory.path()).len() == files {
            let after = std::fs::metadata(&path).unwrap().len();
            // A piece that an earlier crash left may have been removed.
            let before = before.min(after);
            let left = before + (after - before) * u64::from(at) / 255;
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(left)
                .unwrap();
        }
        one = sink(path.clone(), rotation);
        taken = acknowledged;
    }
    let mut found = Vec::new();
    for name in names(directory.path()) {
        found.extend(ids(&directory.path().join(name)));
    }
    found.sort_unstable();
    assert_eq!(
        found.len(),
        found.iter().collect::<HashSet<_>>().len(),
        "something is there twice"
    );
    assert_eq!(found, (1..=all.len() as u64).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn crashes_lose_and_double_nothing(
        sizes in proptest::collection::vec(prop_oneof![20 => 0_usize..200, 1 => Just(BATCH_BYTES + 77)], 1..60),
        crashes in proptest::collection::vec((any::<bool>(), any::<u8>()), 1..20),
        bytes in proptest::option::of(200_u64..3_000),
    ) {
        survives(&sizes, &crashes, Rotation { bytes, period: None });
    }
}
