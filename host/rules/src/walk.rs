//! A walk: one pass over one window of a unit, page by page.
//!
//! Promises:
//! - The window, the cursor and the page size are frozen when the walk begins, so the vendor's page tokens stay
//!   valid and a page number keeps its meaning.
//! - A walk ends: a step that was used before in this walk is never taken again (A, B, A, B is a loop too), a
//!   page that shows again what an earlier page showed is a stall, and so are too many empty pages in a row.
//! - A page whose records were all known is progress. An empty page that names a next step is not the last one.
//! - What is not yet walked is in the walk itself, which is stored with every page: after a crash the walk goes
//!   on from its stored step.
//!
//! - What a walk passed over in the middle is known to lie there; only where that is not known is nothing of the walk
//!   vouched for.
//!
//! Refuses: to call a walk complete that stalled, was cut by the vendor's result cap, or brought fewer records
//! than the vendor's own total says.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, Extent, walked_part};
use crate::doubles::Sightings;
use crate::model::{Order, Reason, Timestamp, Window};
use crate::window::{Newest, OrderWatch};

/// Empty pages in a row, each with a next step, after which a walk is a stall. Vendors that filter after
/// paging send runs of a few; hundreds in a row are a cursor that leads nowhere.
pub const EMPTY_PAGES_IN_A_ROW: u32 = 200;

/// What a walk has seen so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// HTTP requests made.
    pub calls: u64,
    /// Answers of 304.
    pub not_modified: u64,
    /// Decoded bytes of the bodies.
    pub bytes: u64,
    /// Records in the answers.
    pub records: u64,
    /// Of them: not known before.
    pub new: u64,
    /// Of them: known with other content.
    pub changed: u64,
    /// Of them: known and the same.
    pub unchanged: u64,
    /// Of them: deletions.
    pub deleted: u64,
    /// Records that could not be taken and are set aside for a person; counted in none of the others.
    pub set_aside: u64,
    /// A page held as many records as a page can.
    pub full_page: bool,
    /// The slowest call in ms.
    pub latency: u64,
}

impl Tally {
    /// Both together.
    pub fn plus(&self, more: &Tally) -> Tally {
        Tally {
            calls: self.calls + more.calls,
            not_modified: self.not_modified + more.not_modified,
            bytes: self.bytes + more.bytes,
            records: self.records + more.records,
            new: self.new + more.new,
            changed: self.changed + more.changed,
            unchanged: self.unchanged + more.unchanged,
            deleted: self.deleted + more.deleted,
            set_aside: self.set_aside + more.set_aside,
            full_page: self.full_page || more.full_page,
            latency: self.latency.max(more.latency),
        }
    }

    /// Something came that was not known before.
    pub fn productive(&self) -> bool {
        self.new + self.changed + self.deleted > 0
    }
}

/// One pass over one window, as stored between its pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walk {
    /// Counts the unit's walks; validators carry it.
    pub number: u64,
    /// Who asked.
    pub reason: Reason,
    /// What is asked for, frozen.
    pub window: Window,
    /// The window ends before the present: a slice of a longer catch-up.
    #[serde(default)]
    pub capped: bool,
    /// The cursor that the walk began with, frozen.
    pub cursor: Option<String>,
    /// Records per page, frozen.
    pub page_size: u32,
    /// When it began, by this machine's clock.
    pub started: Timestamp,
    /// Steps that are still to be taken, in order; `None` is the walk's first call.
    pub pending: VecDeque<Option<String>>,
    /// The unit's cursor once the walk is complete.
    pub next_cursor: Option<String>,
    /// Where the next slice of the catch-up begins, once this one has been walked.
    #[serde(default)]
    pub then: Option<Timestamp>,
    /// The newest stamp seen.
    pub newest: Newest,
    /// The oldest stamp seen.
    pub oldest: Option<Timestamp>,
    /// The vendor would not give the rest.
    pub truncated: bool,
    /// It was the walk's last page that said so: what is missing lies behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Something was left out, and where is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_step: bool,
    /// More than one step was open at once: it is no longer a list of pages of which one follows on the other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branched: bool,
    /// What was passed over on the way: more records of one moment than the vendor gives.
    #[serde(default, skip_serializing_if = "Coverage::is_empty")]
    pub passed: Coverage,
    /// Whether the listing is in the order that it is said to be in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watch: OrderWatch,
    /// Both ends of the listing, of a stream that may be a feed of the newest records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
    /// The last page with records was full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last_full: bool,
    /// The unit's cursor was left out on purpose: the vendor may have lost it without a word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanchored: bool,
    /// The walk was going in a circle.
    pub stalled: bool,
    /// The walk was one full page that named no next step: there may be more, and the vendor has no way to ask for it.
    #[serde(default)]
    pub brimful: bool,
    /// The vendor's own count.
    pub total: Option<u64>,
    /// The vendor asks for at least this pause before the next poll, in ms.
    pub poll_after: Option<u64>,
    /// Some of it was walked before a restart, so counts over the whole walk are not known.
    #[serde(default)]
    pub resumed: bool,
    /// An earlier poll began it.
    #[serde(default)]
    pub taken_up: bool,
    /// Records that it shows in several versions.
    #[serde(default, skip_serializing_if = "Sightings::is_empty")]
    pub doubles: Sightings,
    /// What was seen.
    pub tally: Tally,
}

/// The two ends of a listing, by its records' ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ends {
    /// The id that came first.
    pub first: String,
    /// The id that came last.
    pub last: String,
    /// The smallest and the largest, while all ids are whole numbers.
    pub numbers: Option<(u64, u64)>,
}

impl Ends {
    fn of(ids: &[&str]) -> Option<Ends> {
        let numbers: Option<Vec<u64>> = ids.iter().map(|id| id.parse().ok()).collect();
        let numbers = numbers.unwrap_or_default();
        Some(Ends {
            first: (*ids.first()?).to_owned(),
            last: (*ids.last()?).to_owned(),
            numbers: numbers
                .iter()
                .min()
                .copied()
                .zip(numbers.iter().max().copied()),
        })
    }

    fn and(self, later: Ends) -> Ends {
        let numbers = self.numbers.zip(later.numbers);
        Ends {
            first: self.first,
            last: later.last,
            numbers: numbers.map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))),
        }
    }

    /// The id of the oldest record, by the order of the listing; feeds without one show the newest first.
    pub fn oldest(&self, order: Order) -> String {
        match (self.numbers, order) {
            (Some((least, _)), _) => least.to_string(),
            (None, Order::Ascending) => self.first.clone(),
            (None, Order::Descending | Order::Unordered) => self.last.clone(),
        }
    }

    /// The id of the newest record.
    pub fn newest(&self, order: Order) -> String {
        match (self.numbers, order) {
            (Some((_, most)), _) => most.to_string(),
            (None, Order::Ascending) => self.last.clone(),
            (None, Order::Descending | Order::Unordered) => self.first.clone(),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The guard against loops: what a walk has met so far. It lives as long as the poll and is not stored: after a
/// restart a loop is found one round later.
#[derive(Debug, Default)]
pub struct Guard {
    steps: HashSet<u64>,
    pages: HashSet<u64>,
    ids: HashSet<u64>,
    empty_in_a_row: u32,
}

/// What a walk begins with.
#[derive(Clone, Debug)]
pub struct Start {
    /// Counts the unit's walks.
    pub number: u64,
    /// Who asked.
    pub reason: Reason,
    /// What is asked for.
    pub window: Window,
    /// The window ends before the present.
    pub capped: bool,
    /// Where the next slice begins.
    pub then: Option<Timestamp>,
    /// The unit's cursor.
    pub cursor: Option<String>,
    /// Records per page.
    pub page_size: u32,
    /// This machine's time.
    pub now: Timestamp,
}

/// One page, as far as walking is concerned.
#[derive(Clone, Debug, Default)]
pub struct PageFacts<'a> {
    /// The ids of its records.
    pub ids: Vec<&'a str>,
    /// Changes when any record of the page does.
    pub content: u64,
    /// The newest stamp among its records.
    pub newest: Newest,
    /// The oldest.
    pub oldest: Option<Timestamp>,
    /// The first stamp of the page, and whether those after it are in order.
    pub order: Option<(Timestamp, OrderWatch)>,
    /// Note both ends of the listing.
    pub feed: bool,
    /// The steps that it names.
    pub next: Vec<String>,
    /// The unit's new cursor.
    pub cursor: Option<String>,
    /// The vendor's own count for the whole walk.
    pub total: Option<u64>,
    /// The vendor won't give what is left.
    pub truncated: bool,
    /// The pause that the vendor asks for before the next poll, in ms.
    pub poll_after: Option<u64>,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Everything that the vendor showed was read.
    Complete,
    /// The vendor would not give the rest.
    Truncated,
    /// It went in a circle.
    Stalled,
    /// Fewer records came than the vendor's own total says.
    Short {
        /// The vendor's total.
        total: u64,
        /// Distinct records that came.
        distinct: u64,
    },
}

impl Walk {
    /// A walk at its beginning.
    pub fn start(start: Start) -> Walk {
        Walk {
            number: start.number,
            reason: start.reason,
            window: start.window,
            capped: start.capped,
            cursor: start.cursor,
            page_size: start.page_size,
            started: start.now,
            pending: VecDeque::from([None]),
            next_cursor: None,
            then: start.then,
            newest: Newest::default(),
            oldest: None,
            truncated: false,
            cut: false,
            lost_step: false,
            branched: false,
            passed: Coverage::default(),
            watch: OrderWatch::default(),
            ends: None,
            last_full: false,
            unanchored: false,
            stalled: false,
            brimful: false,
            total: None,
            poll_after: None,
            resumed: false,
            taken_up: false,
            doubles: Sightings::default(),
            tally: Tally::default(),
        }
    }

    /// Takes up a walk that was stored before a restart or a wait. None when it must begin anew because a
    /// setting that its steps depend on has changed: a page number means nothing under another page size.
    pub fn resume(mut self, page_size: u32) -> Option<Walk> {
        if self.page_size != page_size || self.pending.is_empty() {
            return None;
        }
        self.resumed = true;
        self.taken_up = true;
        Some(self)
    }

    /// The step to take now: `None` when nothing is left; `Some(None)` is the walk's first call.
    pub fn step(&self) -> Option<Option<&str>> {
        self.pending.front().map(Option::as_deref)
    }

    /// Nothing is left to ask.
    pub fn done(&self) -> bool {
        self.pending.is_empty()
    }

    /// The page of the current step has come.
    pub fn page(&mut self, facts: PageFacts<'_>, guard: &mut Guard) {
        let taken = self.pending.pop_front().flatten();
        guard.steps.insert(fingerprint(&taken));
        self.newest.seen = self.newest.seen.max(facts.newest.seen);
        self.newest.future = self.newest.future.or(facts.newest.future);
        self.newest.future_count += facts.newest.future_count;
        self.oldest = match (self.oldest, facts.oldest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if facts.truncated {
            self.truncated = true;
            match (facts.next.is_empty(), facts.oldest, facts.newest.seen) {
                (true, ..) => self.cut = true,
                (false, Some(since), Some(newest)) => self.passed.add(Extent {
                    since,
                    until: newest.saturating_add(1),
                }),
                _ => self.lost_step = true,
            }
        }
        if let Some((first, page)) = &facts.order {
            self.watch.page(*first, page);
        }
        if !facts.ids.is_empty() {
            self.last_full = facts.ids.len() as u64 >= u64::from(self.page_size);
        }
        if facts.feed {
            let page = Ends::of(&facts.ids);
            self.ends = match (self.ends.take(), page) {
                (Some(before), Some(page)) => Some(before.and(page)),
                (before, page) => before.or(page),
            };
        }
        // A total that shrinks on the way: what was deleted may have drawn a record onto a page that was read already.
        self.total = self.total.max(facts.total);
        self.poll_after = self.poll_after.max(facts.poll_after);
        if facts.cursor.is_some() {
            self.next_cursor = facts.cursor;
        }
        if self.total.is_some() {
            for id in &facts.ids {
                guard.ids.insert(fingerprint(id));
            }
        }
        self.brimful = taken.is_none()
            && facts.next.is_empty()
            && facts.ids.len() as u64 >= u64::from(self.page_size);
        let empty = facts.ids.is_empty();
        guard.empty_in_a_row = if empty {
            guard.empty_in_a_row.saturating_add(1)
        } else {
            0
        };
        let shown_before = !empty && !guard.pages.insert(facts.content);
        let leads_nowhere = guard.empty_in_a_row > EMPTY_PAGES_IN_A_ROW;
        if (shown_before || leads_nowhere) && !facts.next.is_empty() {
            self.stalled = true;
            return;
        }
        self.enqueue(facts.next, empty, guard);
    }

    /// The vendor answered 304: the page of the current step is as it was, and so are the steps and the cursor
    /// that it named then.
    pub fn not_modified(&mut self, next: Vec<String>, cursor: Option<String>, guard: &mut Guard) {
        let taken = self.pending.pop_front().flatten();
        guard.steps.insert(fingerprint(&taken));
        if cursor.is_some() {
            self.next_cursor = cursor;
        }
        // What was on that page is not known any more, so the vendor's total can't be checked.
        self.resumed = true;
        // Nor how much: what the vendor refuses behind it may be the end of the list, or more than it gives.
        self.last_full = true;
        self.enqueue(next, true, guard);
    }

    /// The vendor refuses the current step for good: the walk goes on without it, and is not whole. `at_cap`: it looks like
    /// the most that the vendor gives for one query.
    pub fn skip(&mut self, at_cap: bool, guard: &mut Guard) {
        let taken = self.pending.pop_front().flatten();
        guard.steps.insert(fingerprint(&taken));
        self.truncated = true;
        // Of pages that follow on each other all that is missing lies behind the last one.
        if at_cap && self.pending.is_empty() && !self.branched {
            self.cut = true;
        } else {
            self.lost_step = true;
        }
    }

    /// The vendor has nothing at the current step: the list ended with the page before it.
    pub fn past_the_end(&mut self, guard: &mut Guard) {
        let taken = self.pending.pop_front().flatten();
        guard.steps.insert(fingerprint(&taken));
    }

    /// Leaves out what is still to be asked: everything that is wanted has come.
    pub fn enough(&mut self) {
        self.pending.clear();
    }

    /// A walk over a part of the past has come to what lies behind that part: a vendor that can't be asked for an upper
    /// bound lists all the rest after it. `oldest` and `newest` are those of the last page.
    pub fn beyond(
        &self,
        order: Order,
        oldest: Option<Timestamp>,
        newest: Option<Timestamp>,
    ) -> bool {
        let aside = matches!(self.reason, Reason::Backfill | Reason::Settle);
        aside
            && match order {
                Order::Ascending => oldest.is_some_and(|oldest| oldest >= self.window.until),
                Order::Descending => {
                    newest.is_some_and(|newest| self.window.since.is_some_and(|at| newest < at))
                }
                Order::Unordered => false,
            }
    }

    /// The vendor refused what lies behind the walk's last page. (Older programs did not store where it did.)
    pub fn is_cut(&self) -> bool {
        self.cut || (self.truncated && !self.lost_step && self.passed.is_empty())
    }

    /// What a walk that the vendor did not let end has read whole, given the order of its listing.
    pub fn read_whole(&self, order: Order) -> Coverage {
        let mut whole = Coverage::default();
        if self.lost_step {
            return whole;
        }
        let walked = if self.is_cut() {
            walked_part(order, self.window, self.oldest, self.newest.seen)
        } else {
            Some(Extent::from(self.window))
        };
        if let Some(walked) = walked {
            whole.add(walked);
        }
        for passed in self.passed.extents() {
            whole.remove(*passed);
        }
        whole
    }

    fn enqueue(&mut self, next: Vec<String>, empty: bool, guard: &Guard) {
        for step in next {
            let step = Some(step);
            if guard.steps.contains(&fingerprint(&step)) || self.pending.contains(&step) {
                // Some vendors repeat their last token on an empty page for ever: that is their end mark.
                self.stalled |= !empty;
            } else {
                self.pending.push_back(step);
            }
        }
        self.branched |= self.pending.len() > 1;
    }

    /// How the walk ended; only meaningful once it is [`Walk::done`] or stalled.
    pub fn ending(&self, guard: &Guard) -> Ending {
        if self.stalled {
            return Ending::Stalled;
        }
        if self.truncated {
            return Ending::Truncated;
        }
        let distinct = guard.ids.len() as u64;
        match self.total {
            Some(total) if !self.resumed && distinct < total => Ending::Short { total, distinct },
            _ => Ending::Complete,
        }
    }
}

fn fingerprint(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
