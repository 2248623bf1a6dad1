//! Streams below streams: a unit for each record of the stream above.
//!
//! Promises:
//! - Every record of a stream that others hang below has a unit in each of those, from the moment at which it is durable.
//!   The text of such records is stored in the transaction that delivers them; the units follow from it, so a crash in
//!   between loses none: they are made at the next start.
//! - A child unit is a unit like any other: it has a cursor, a schedule, a lease, gaps and a log of its own. Its connector is
//!   given the record above as it was last delivered.
//! - When the record above is deleted at the vendor, or a listing of everything no longer shows it, its units rest, and
//!   what is stored of them stays. They are polled again when it comes back.
//!
//! A child's name is the id of the record above; where that one's unit has a partition itself, that stands before it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connection::Connection;
use crate::host::Host;
use crate::store::{Seen, StoreError, UnitId, UnitKey, UnitRow};

/// Which record each child unit is polled for.
#[derive(Default)]
pub struct Children {
    tree: Mutex<Tree>,
    /// Units above whose children could not be made, as the store failed right then.
    owed: Mutex<BTreeSet<UnitId>>,
}

/// The record above.
#[derive(Clone)]
struct Parent {
    unit: UnitId,
    id: Arc<str>,
}

/// Who hangs below whom, to be looked up from either end.
#[derive(Default)]
struct Tree {
    parents: HashMap<UnitId, Parent>,
    below: HashMap<UnitId, HashMap<Arc<str>, Vec<UnitId>>>,
}

impl Tree {
    fn put(&mut self, child: UnitId, unit: UnitId, id: &str) {
        let id: Arc<str> = id.into();
        let parent = Parent {
            unit,
            id: id.clone(),
        };
        // The key of a unit names its parent: known once, it stays where it is.
        if self.parents.insert(child, parent).is_none() {
            let below = self.below.entry(unit).or_default();
            below.entry(id).or_default().push(child);
        }
    }

    /// The units below these records, and below theirs.
    fn descendants(&self, above: UnitId, ids: &[String]) -> Vec<UnitId> {
        let Some(below) = self.below.get(&above) else {
            return Vec::new();
        };
        let children = ids.iter().filter_map(|id| below.get(id.as_str()));
        let mut found: Vec<UnitId> = children.flatten().copied().collect();
        let mut place = 0;
        while let Some(unit) = found.get(place) {
            if let Some(below) = self.below.get(unit) {
                found.extend(below.values().flatten());
            }
            place += 1;
        }
        found
    }
}

impl Host {
    /// The id and the text of the record that a unit is polled for; none when that is gone.
    pub(crate) fn parent_of(&self, unit: UnitId) -> Result<Option<(String, String)>, StoreError> {
        let parent = lock(&self.children.tree).parents.get(&unit).cloned();
        let Some(Parent { unit, id }) = parent else {
            return Ok(None);
        };
        let text = self.store.kept_record(unit, &id)?;
        Ok(text.map(|text| (id.to_string(), text)))
    }

    /// Adds the units below these, and those below them, as far as their records are known.
    pub(crate) async fn descend(
        &self,
        connection: &Connection,
        units: &mut Vec<UnitRow>,
    ) -> Result<(), StoreError> {
        let mut level = units.clone();
        while !level.is_empty() {
            let mut next = Vec::new();
            for above in &level {
                if has_children(connection, above) {
                    let mut ids = Vec::new();
                    self.store
                        .for_each_kept(above.id, &mut |id| ids.push(id.to_owned()))?;
                    next.extend(self.make(connection, above, &ids).await?);
                }
            }
            units.extend(next.iter().cloned());
            level = next;
        }
        Ok(())
    }

    /// Takes in what a page of a unit has brought: units for its new records begin, those of its deleted ones rest.
    ///
    /// # Errors
    /// When the store fails. The next page of the unit makes up for it.
    pub(crate) async fn adopt(
        &self,
        connection: &Connection,
        above: &UnitRow,
        seen: &Seen,
    ) -> Result<(), StoreError> {
        if !has_children(connection, above) {
            return Ok(());
        }
        let resting = lock(&self.children.tree).descendants(above.id, &seen.gone);
        for child in resting {
            self.scheduler.queue().remove(child);
        }
        let owes = lock(&self.children.owed).remove(&above.id);
        if !owes && seen.born.is_empty() {
            return Ok(());
        }
        let begun = if owes {
            let mut all = vec![above.clone()];
            let made = self.descend(connection, &mut all).await;
            made.map(|()| all.split_off(1))
        } else {
            self.make(connection, above, &seen.born).await
        };
        let mut begun = begun.inspect_err(|_| {
            lock(&self.children.owed).insert(above.id);
        })?;
        {
            let queue = self.scheduler.queue();
            begun.retain(|unit| !queue.contains(unit.id));
        }
        let number = self.connections.grow(&connection.name, &begun);
        let scheduled = self.scheduler.is_by_schedule();
        self.place(
            &connection.name,
            number,
            &begun,
            Some(connection),
            scheduled,
        );
        Ok(())
    }

    /// Makes the units of these records in every stream below.
    async fn make(
        &self,
        connection: &Connection,
        above: &UnitRow,
        ids: &[String],
    ) -> Result<Vec<UnitRow>, StoreError> {
        let mut made = Vec::new();
        for (stream, ready) in &connection.streams {
            if ready.parent.as_ref() != Some(&above.key.stream) {
                continue;
            }
            let keys = ids.iter().map(|id| below(&above.key, stream, id)).collect();
            let units = self.ensure_units(keys).await?;
            let mut tree = lock(&self.children.tree);
            for (unit, id) in units.iter().zip(ids) {
                tree.put(unit.id, above.id, id);
            }
            drop(tree);
            made.extend(units);
        }
        Ok(made)
    }
}

fn has_children(connection: &Connection, above: &UnitRow) -> bool {
    let stream = connection.streams.get(&above.key.stream);
    stream.is_some_and(|stream| stream.has_children)
}

/// The name of the unit of a stream that is polled for a record.
fn below(above: &UnitKey, stream: &str, id: &str) -> UnitKey {
    let partition = match &above.partition {
        Some(partition) => format!("{partition}/{id}"),
        None => id.to_owned(),
    };
    UnitKey {
        connection: above.connection.clone(),
        stream: stream.to_owned(),
        partition: Some(partition),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
