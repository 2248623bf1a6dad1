//! What must hold of any connector.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use weir_rules::json_pointer::pointer_value;
use weir_runtime::Connector;
use weir_runtime::contract::{CursorKind, Reason, Task};

use super::walks::Walked;
use super::{Outcome, Verdict};
use crate::authoring::count;
use crate::authoring::walk::play::told;

/// A connector without a recorded walk is not tested at all.
pub(super) fn some_walks(files: usize) -> Outcome {
    let mut outcome = Outcome::of("walks", Vec::new(), "");
    outcome.detail.clear();
    if files == 0 {
        outcome.verdict = Verdict::Failed;
        outcome.detail = vec![
            "there is none in walks/: record one with `weir record --connection NAME --out walks`, or write one by hand \
             (docs/writing-connectors.md)"
                .to_owned(),
        ];
    }
    outcome
}

/// Every stream has a walk that brings a page.
pub(super) fn streams(walked: &[Walked]) -> Outcome {
    let declared: BTreeSet<&str> = walked
        .iter()
        .flat_map(|walk| &walk.streams)
        .map(|stream| stream.name.as_str())
        .collect();
    let shown: BTreeSet<&str> = walked
        .iter()
        .filter(|walk| walk.played.iter().any(|played| played.read.is_ok()))
        .map(|walk| walk.stream.name.as_str())
        .collect();
    let wrong = declared
        .difference(&shown)
        .map(|name| format!("stream {name} is declared, and no walk reads a page of it"));
    let seen = format!("{} walked", count(declared.len(), "stream"));
    Outcome::of("streams", wrong.collect(), seen)
}

/// From the key's fields to the id, and back.
type Known = (BTreeMap<String, String>, BTreeMap<String, String>);

/// One record has one id, whichever page shows it, and two records have two.
pub(super) fn ids(walked: &[Walked]) -> Outcome {
    let mut wrong = Vec::new();
    let mut seen = 0;
    // By unit.
    let mut known: HashMap<_, Known> = HashMap::new();
    for walk in walked {
        for played in &walk.played {
            let Ok(page) = &played.read else { continue };
            let mut on_page: HashMap<&str, &str> = HashMap::new();
            let unit = (
                &walk.stream.name,
                &played.task.partition,
                &played.task.parent,
            );
            for record in page.records.iter().filter(|record| !record.id.is_empty()) {
                seen += 1;
                let json = record.json(&played.response).unwrap_or_default();
                if let Some(other) = on_page.insert(&record.id, json)
                    && other != json
                {
                    wrong.push(format!(
                        "walk {}: two different records of one page have the id {:?}",
                        walk.name, record.id
                    ));
                }
                let fields: Option<Vec<&str>> = walk
                    .stream
                    .key
                    .iter()
                    .map(|pointer| pointer_value(json, pointer))
                    .collect();
                let Some(fields) = fields else {
                    if !record.deleted {
                        wrong.push(format!(
                            "walk {}: record {:?} of stream {} has no {}, which the descriptor names as its key",
                            walk.name,
                            record.id,
                            walk.stream.name,
                            walk.stream.key.join(" and ")
                        ));
                    }
                    continue;
                };
                if fields.is_empty() {
                    continue;
                }
                let key = fields.join(" ");
                let (ids, keys) = known.entry(unit).or_default();
                let id = ids.entry(key.clone()).or_insert_with(|| record.id.clone());
                if *id != record.id {
                    wrong.push(format!(
                        "walk {}: the record with the key {key} has the id {:?} here and {id:?} elsewhere",
                        walk.name, record.id
                    ));
                }
                let first = keys.entry(record.id.clone()).or_insert_with(|| key.clone());
                if *first != key {
                    wrong.push(format!(
                        "walk {}: the id {:?} is that of two records, with the keys {first} and {key}",
                        walk.name, record.id
                    ));
                }
            }
        }
    }
    wrong.dedup();
    Outcome::of(
        "ids",
        wrong,
        format!("stable and unique in {}", count(seen, "record")),
    )
}

/// What a walk leaves as its cursor, the next poll can begin with.
pub(super) fn cursors(connector: &Connector, walked: &[Walked]) -> Outcome {
    let mut wrong = Vec::new();
    let mut taken = 0;
    let mut opaque: BTreeMap<&str, bool> = BTreeMap::new();
    for walk in walked {
        let gives = opaque
            .entry(&walk.stream.name)
            .or_insert(walk.stream.cursor != CursorKind::Opaque);
        for played in &walk.played {
            let Ok(page) = &played.read else { continue };
            let Some(cursor) = &page.cursor else { continue };
            *gives = true;
            taken += 1;
            let task = Task {
                cursor: Some(cursor.clone()),
                reason: Reason::Schedule,
                ..played.task.clone()
            };
            match connector.build_request(&task, None) {
                Ok(Ok(_)) => {}
                Ok(Err(fault)) => wrong.push(format!(
                    "walk {}: a poll that begins with the cursor {cursor} fails: {}",
                    walk.name,
                    told(&fault)
                )),
                Err(error) => wrong.push(format!("walk {}: {error}", walk.name)),
            }
        }
    }
    let silent = opaque.iter().filter(|(_, gives)| !**gives);
    wrong.extend(silent.map(|(name, _)| {
        format!("stream {name} says that its cursor is the vendor's, and no walk leaves one")
    }));
    let mut outcome = Outcome::of(
        "cursors",
        wrong,
        format!("{} taken up again", count(taken, "cursor")),
    );
    if taken == 0 && outcome.verdict == Verdict::Ok {
        outcome.detail.clear();
    }
    outcome
}
