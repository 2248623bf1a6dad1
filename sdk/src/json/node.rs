//! The places that a plan's pointers lead to, as a tree.

use super::raw::unescape;
use super::scan::{Key, Scan};
use super::{Error, Raw};

/// A place that a pointer leads to or through.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) children: Vec<(String, Node)>,
    /// The numbers under which what stands here is wanted.
    pub(super) slots: Vec<usize>,
    /// The array of records stands here.
    pub(super) records: bool,
}

impl Node {
    /// Calls `mark` on the place that a pointer leads to.
    pub(super) fn mark(&mut self, pointer: &str, mark: impl FnOnce(&mut Node)) {
        let Some(rest) = pointer.strip_prefix('/') else {
            return mark(self);
        };
        let (part, _) = rest.split_once('/').unwrap_or((rest, ""));
        let below = rest.get(part.len()..).unwrap_or_default();
        let key = if part.contains('~') {
            part.replace("~1", "/").replace("~0", "~")
        } else {
            part.to_owned()
        };
        match self.children.iter_mut().find(|(name, _)| *name == key) {
            Some((_, child)) => child.mark(below, mark),
            None => {
                let mut child = Node::default();
                child.mark(below, mark);
                self.children.push((key, child));
            }
        }
    }

    #[inline]
    fn child(&self, key: Key<'_>) -> Option<&Node> {
        if key.escaped {
            self.named(&unescape(key.text)?)
        } else {
            self.named(key.text)
        }
    }

    #[inline]
    fn named(&self, key: &str) -> Option<&Node> {
        let found = self.children.iter().find(|(name, _)| name == key);
        found.map(|(_, node)| node)
    }

    /// Forgets what was found here and below.
    pub(super) fn clear(&self, slots: &mut [Option<Raw<'_>>]) {
        self.set(slots, None);
        for (_, child) in &self.children {
            child.clear(slots);
        }
    }

    /// Notes what stands here.
    pub(super) fn set<'a>(&self, slots: &mut [Option<Raw<'a>>], value: Option<Raw<'a>>) {
        for &slot in &self.slots {
            if let Some(slot) = slots.get_mut(slot) {
                *slot = value;
            }
        }
    }

    /// Do the records stand here or below?
    pub(super) fn leads_to_records(&self) -> bool {
        self.records
            || self
                .children
                .iter()
                .any(|(_, child)| child.leads_to_records())
    }

    /// Passes over the value that stands here; calls `visit` for each part of it that a pointer leads to or through, which
    /// passes over that part. As deep as the pointers, not as the text.
    #[inline]
    pub(super) fn descend<'a>(
        &self,
        scan: &mut Scan<'a>,
        mut visit: impl FnMut(&mut Scan<'a>, &Node) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match scan.peek() {
            Some(b'{') if !self.children.is_empty() => {
                scan.object(|scan, key| match self.child(key) {
                    Some(child) => visit(scan, child),
                    None => scan.skip(),
                })
            }
            Some(b'[') if !self.children.is_empty() => {
                let mut index = 0_usize;
                scan.array(|scan| {
                    let child = self.named(&index.to_string());
                    index += 1;
                    match child {
                        Some(child) => visit(scan, child),
                        None => scan.skip(),
                    }
                })
            }
            _ => scan.skip(),
        }
    }

    /// Passes over the value that stands here and notes what the pointers lead to.
    pub(super) fn collect<'a>(
        &self,
        scan: &mut Scan<'a>,
        slots: &mut [Option<Raw<'a>>],
    ) -> Result<(), Error> {
        let start = scan.at();
        self.descend(scan, |scan, child| {
            if !child.children.is_empty() {
                child.clear(slots); // the same key came before: the last one counts
            }
            child.collect(scan, slots)
        })?;
        self.set(slots, Some(Raw(scan.since(start))));
        Ok(())
    }
}
