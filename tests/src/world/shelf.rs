//! What the API shows at the moment, in the order in which it lists it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::dice::mix;
use crate::spec::{CollectionSpec, Order, Paging};

/// A place in the listing: the order's value, then the record's number.
pub(crate) type Place = (i64, u64);

/// What the order's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The stamp.
    Stamp,
    /// A number that follows from the record alone and means nothing.
    Scramble,
    /// A counter of changes: a feed.
    Change,
}

#[derive(Debug)]
pub(crate) struct Shelf {
    by: By,
    downwards: bool,
    changes: i64,
    places: HashMap<u64, Place>,
    listing: BTreeMap<Place, usize>,
}

impl Shelf {
    pub(crate) fn new(spec: &CollectionSpec) -> Self {
        let by = match (&spec.paging, spec.order) {
            (Paging::Feed { .. }, _) => By::Change,
            (_, Order::Unordered) => By::Scramble,
            _ => By::Stamp,
        };
        Shelf {
            by,
            downwards: by == By::Stamp && spec.order == Order::Descending,
            changes: 0,
            places: HashMap::new(),
            listing: BTreeMap::new(),
        }
    }

    /// Shows this version of the record, and no earlier one.
    pub(crate) fn put(&mut self, record: u64, stamp: i64, version: usize) {
        self.changes += 1;
        let value = match self.by {
            By::Stamp => stamp,
            By::Scramble => (mix(record) >> 1) as i64,
            By::Change => self.changes,
        };
        let place = (value, record);
        if let Some(before) = self.places.insert(record, place) {
            self.listing.remove(&before);
        }
        self.listing.insert(place, version);
    }

    /// No longer shows the record.
    pub(crate) fn remove(&mut self, record: u64) {
        if let Some(before) = self.places.remove(&record) {
            self.listing.remove(&before);
        }
    }

    /// Where a record stands in the listing, while it is shown.
    pub(crate) fn place(&self, record: u64) -> Option<Place> {
        self.places.get(&record).copied()
    }

    /// Whether the listing's order is that of the stamps, so that a filter by stamp is a range of it.
    pub(crate) fn is_by_stamp(&self) -> bool {
        self.by == By::Stamp
    }

    /// The listing after a place, in its order, between two bounds of the order's value (low, high).
    pub(crate) fn after(
        &self,
        after: Option<Place>,
        low: Bound<Place>,
        high: Bound<Place>,
    ) -> Box<dyn Iterator<Item = (Place, usize)> + '_> {
        let (mut low, mut high) = (low, high);
        if let Some(after) = after {
            if self.downwards {
                high = tighter(high, Bound::Excluded(after), |new, old| new <= old);
            } else {
                low = tighter(low, Bound::Excluded(after), |new, old| new >= old);
            }
        }
        if is_empty(&low, &high) {
            return Box::new(std::iter::empty());
        }
        let range = self
            .listing
            .range((low, high))
            .map(|(place, version)| (*place, *version));
        if self.downwards {
            Box::new(range.rev())
        } else {
            Box::new(range)
        }
    }

    /// Everything, in no particular order.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.listing.values().copied()
    }
}

fn value(bound: &Bound<Place>) -> Option<Place> {
    match bound {
        Bound::Included(place) | Bound::Excluded(place) => Some(*place),
        Bound::Unbounded => None,
    }
}

fn tighter(
    old: Bound<Place>,
    new: Bound<Place>,
    is_tighter: impl Fn(Place, Place) -> bool,
) -> Bound<Place> {
    match (value(&old), value(&new)) {
        (Some(before), Some(after)) if !is_tighter(after, before) => old,
        _ => new,
    }
}

/// `BTreeMap::range` panics on a range that ends before it begins.
fn is_empty(low: &Bound<Place>, high: &Bound<Place>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (low, high) => value(low) >= value(high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(order: Order) -> Shelf {
        let mut shelf = Shelf::new(&CollectionSpec {
            order,
            ..CollectionSpec::default()
        });
        for (record, stamp) in [(0, 10), (1, 20), (2, 20), (3, 30)] {
            shelf.put(record, stamp, record as usize);
        }
        shelf
    }

    fn walk(shelf: &Shelf, after: Option<Place>) -> Vec<usize> {
        shelf
            .after(after, Bound::Unbounded, Bound::Unbounded)
            .map(|(_, version)| version)
            .collect()
    }

    #[test]
    fn both_directions_go_on_behind_a_place() {
        let up = shelf(Order::Ascending);
        assert_eq!(walk(&up, None), [0, 1, 2, 3]);
        assert_eq!(walk(&up, Some((20, 1))), [2, 3]);
        let down = shelf(Order::Descending);
        assert_eq!(walk(&down, None), [3, 2, 1, 0]);
        assert_eq!(walk(&down, Some((20, 2))), [1, 0]);
    }

    #[test]
    fn an_edit_moves_a_record_and_leaves_no_trace() {
        let mut up = shelf(Order::Ascending);
        up.put(0, 40, 9);
        assert_eq!(walk(&up, None), [1, 2, 3, 9]);
        up.remove(2);
        assert_eq!(walk(&up, None), [1, 3, 9]);
    }

    #[test]
    fn bounds_that_cross_are_an_empty_listing() {
        let up = shelf(Order::Ascending);
        let crossed = up.after(Some((30, 3)), Bound::Unbounded, Bound::Excluded((20, 0)));
        assert_eq!(crossed.count(), 0);
        let point = up.after(None, Bound::Excluded((20, 1)), Bound::Excluded((20, 1)));
        assert_eq!(point.count(), 0);
    }
}
