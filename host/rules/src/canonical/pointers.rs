//! The volatile and the required pointers of a stream, as one tree that is walked beside the record.

use std::collections::BTreeMap;

use super::text;
use crate::json_pointer::{self, PointerError};

/// What the pointers say of one place in a record.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// By key or index.
    children: Vec<(String, Place)>,
    /// Every element of an array that `children` does not name.
    any: Option<Box<Place>>,
    /// A change here is no change.
    pub(super) volatile: bool,
    /// The number of the required pointer that ends here.
    pub(super) required: Option<usize>,
    /// The required pointers that end here or below.
    pub(super) required_below: Vec<usize>,
}

impl Place {
    /// The tree for a stream's pointers; no required one is given twice.
    pub(super) fn tree(volatile: &[String], required: &[String]) -> Result<Self, PointerError> {
        let mut root = Growing::default();
        for pointer in volatile {
            let tokens = json_pointer::tokens(pointer)?;
            if tokens.is_empty() {
                return Err(PointerError::WholeRecord);
            }
            root.grow_volatile(&tokens);
        }
        for (number, pointer) in required.iter().enumerate() {
            let mut place = &mut root;
            for token in json_pointer::tokens(pointer)? {
                place = place.children.entry(token).or_default();
            }
            place.required = Some(number);
        }
        root.spread();
        Ok(root.settle())
    }

    /// The place under a key, which comes from between its quotes.
    #[inline]
    pub(super) fn member(&self, key: &str) -> Option<&Place> {
        self.children
            .iter()
            .find(|(name, _)| text::equals(key, name))
            .map(|(_, place)| place)
    }

    /// The place of an array's element.
    pub(super) fn element(&self, index: usize) -> Option<&Place> {
        self.children
            .iter()
            .find(|(name, _)| json_pointer::index(name) == Some(index))
            .map(|(_, place)| place)
            .or(self.any.as_deref())
    }
}

/// The tree while it is built.
#[derive(Clone, Default)]
struct Growing {
    children: BTreeMap<String, Growing>,
    any: Option<Box<Growing>>,
    volatile: bool,
    required: Option<usize>,
}

impl Growing {
    fn grow_volatile(&mut self, tokens: &[String]) {
        let Some((first, rest)) = tokens.split_first() else {
            self.volatile = true;
            return;
        };
        if first == "*" {
            self.any.get_or_insert_default().grow_volatile(rest);
        }
        self.children
            .entry(first.clone())
            .or_default()
            .grow_volatile(rest);
    }

    /// Gives what holds for any element to the elements that are named, so that one place says it all.
    fn spread(&mut self) {
        if let Some(any) = &self.any {
            for (token, child) in &mut self.children {
                if json_pointer::index(token).is_some() {
                    child.absorb(any);
                }
            }
        }
        self.children.values_mut().for_each(Growing::spread);
        if let Some(any) = &mut self.any {
            any.spread();
        }
    }

    fn absorb(&mut self, other: &Growing) {
        self.volatile |= other.volatile;
        for (token, child) in &other.children {
            self.children
                .entry(token.clone())
                .or_default()
                .absorb(child);
        }
        if let Some(any) = &other.any {
            self.any.get_or_insert_default().absorb(any);
        }
    }

    fn settle(self) -> Place {
        let children: Vec<(String, Place)> = self
            .children
            .into_iter()
            .map(|(token, child)| (token, child.settle()))
            .collect();
        let required_below = self
            .required
            .into_iter()
            .chain(
                children
                    .iter()
                    .flat_map(|(_, child)| child.required_below.clone()),
            )
            .collect();
        Place {
            children,
            any: self.any.map(|any| Box::new(any.settle())),
            volatile: self.volatile,
            required: self.required,
            required_below,
        }
    }
}
