//! The heap of a connector: made for an instance that lives for a single call.
//!
//! Memory that a guest asks its host for costs a system call on both ends of the call; memory that it has from the start
//! costs nothing. So the heap begins with an arena that is part of the module (zeros, which take no room in the file), and
//! asks for more only where that is not enough. Blocks come in a hundred sizes, four to each doubling; a freed block waits
//! for the next one of its size. Nothing is ever put together or given back: the instance ends with its call.

use std::alloc::Layout;
use std::ptr;

/// What an instance has from the start, in bytes: enough for a call with a page of a few hundred records.
pub const ARENA: usize = 512 << 10;
/// The least that is asked for at once beyond that, in bytes.
const MORE: usize = 256 << 10;
/// Every block begins at a multiple of it, in bytes.
const ALIGN: usize = 16;
/// Up to this size blocks differ by [`ALIGN`].
const SMALL: usize = 4 * ALIGN;
/// Enough for every size of a 32-bit address space.
const SIZES: usize = 4 + 4 * 26;

/// A stretch of memory: its first address, and the one behind its last.
pub(crate) type Stretch = (usize, usize);

/// Places blocks in memory.
pub(crate) struct Heap {
    /// Where the next new block begins.
    next: usize,
    /// The end of the memory that may be given out.
    end: usize,
    /// The last freed block of each size; each holds the address of the one before.
    free: [usize; SIZES],
}

/// How large a block for so many bytes is, and which number its size has.
#[inline]
fn size_of_block(bytes: usize) -> Option<(usize, usize)> {
    if bytes <= SMALL {
        let steps = bytes.max(1).div_ceil(ALIGN);
        return Some((steps * ALIGN, steps - 1));
    }
    // More than 2^log and no more than 2^(log + 1).
    let log = (bytes - 1).ilog2();
    let step = 1_usize.checked_shl(log - 2)?;
    let steps = bytes.div_ceil(step);
    let number = 4 + 4 * (log as usize - 6) + (steps - 5);
    (number < SIZES).then_some((steps.checked_mul(step)?, number))
}

impl Heap {
    pub(crate) const fn new() -> Self {
        Heap {
            next: 0,
            end: 0,
            free: [0; SIZES],
        }
    }

    /// Gives the heap its first memory.
    pub(crate) fn begin(&mut self, (start, end): Stretch) {
        (self.next, self.end) = (start.next_multiple_of(ALIGN), end);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.end != 0
    }

    /// A block for the layout; 0: there is none. `more` gets memory from the host: at least so many bytes.
    ///
    /// # Safety
    /// What `begin` and `more` gave is the heap's alone, and may be written.
    #[allow(unsafe_code, reason = "a freed block holds the address of another")]
    pub(crate) unsafe fn take(
        &mut self,
        layout: Layout,
        more: impl FnOnce(usize) -> Option<Stretch>,
    ) -> usize {
        if layout.align() > ALIGN {
            // Nobody needs this, so it may cost some room.
            let Some(bytes) = layout.size().checked_add(layout.align()) else {
                return 0;
            };
            let place = match size_of_block(bytes) {
                Some((size, _)) => self.place(size, more),
                None => 0,
            };
            return match place {
                0 => 0,
                place => place.next_multiple_of(layout.align()),
            };
        }
        let Some((size, number)) = size_of_block(layout.size()) else {
            return 0;
        };
        let Some(free) = self.free.get_mut(number) else {
            return 0;
        };
        if *free != 0 {
            let block = *free;
            // SAFETY: a freed block is the heap's again, and `give_back` has written this.
            *free = unsafe { ptr::read(ptr::with_exposed_provenance(block)) };
            return block;
        }
        self.place(size, more)
    }

    #[inline]
    fn place(&mut self, size: usize, more: impl FnOnce(usize) -> Option<Stretch>) -> usize {
        if size <= self.end - self.next {
            let block = self.next;
            self.next += size;
            return block;
        }
        let Some((start, end)) = more(size.max(MORE)) else {
            return 0;
        };
        if start == self.end {
            self.end = end;
            let block = self.next;
            self.next += size;
            return block;
        }
        // What has more room left is where the next blocks come from.
        let block = start.next_multiple_of(ALIGN);
        if end.saturating_sub(block + size) > self.end - self.next {
            (self.next, self.end) = (block + size, end);
        }
        block
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// `take` has given it for this layout, and nobody uses it any more.
    #[allow(unsafe_code, reason = "a freed block holds the address of another")]
    pub(crate) unsafe fn give_back(&mut self, block: usize, layout: Layout) {
        if layout.align() > ALIGN {
            return;
        }
        let Some((size, number)) = size_of_block(layout.size()) else {
            return;
        };
        if block + size == self.next {
            self.next = block;
        } else if let Some(free) = self.free.get_mut(number) {
            // SAFETY: the block is unused, aligned, and larger than an address.
            unsafe { ptr::write(ptr::with_exposed_provenance_mut(block), *free) };
            *free = block;
        }
    }

    /// Makes a block larger or smaller where it is; false: it has to move.
    pub(crate) fn fit(&mut self, block: usize, layout: Layout, bytes: usize) -> bool {
        if layout.align() > ALIGN {
            return false;
        }
        let (Some((old, _)), Some((new, _))) = (size_of_block(layout.size()), size_of_block(bytes))
        else {
            return false;
        };
        if old == new {
            return true;
        }
        let is_last = block + old == self.next;
        if is_last && new <= self.end - block {
            self.next = block + new;
            return true;
        }
        false
    }
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, reason = "an allocator hands out memory")]
mod global {
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::UnsafeCell;
    use std::ptr;

    use super::{ARENA, Heap, Stretch};

    const PAGE: usize = 64 << 10;

    #[repr(align(16))]
    struct Arena(UnsafeCell<[u8; ARENA]>);

    // SAFETY: a connector has one thread.
    unsafe impl Sync for Arena {}

    static MEMORY: Arena = Arena(UnsafeCell::new([0; ARENA]));

    /// The allocator of a connector; `export!` installs it.
    pub struct Allocator(UnsafeCell<Heap>);

    // SAFETY: a connector has one thread.
    unsafe impl Sync for Allocator {}

    impl Allocator {
        /// One that has given out nothing.
        #[allow(
            clippy::new_without_default,
            reason = "there is one, and it is a static"
        )]
        pub const fn new() -> Self {
            Allocator(UnsafeCell::new(Heap::new()))
        }
    }

    fn more(bytes: usize) -> Option<Stretch> {
        let pages = bytes.div_ceil(PAGE);
        let before = core::arch::wasm32::memory_grow::<0>(pages);
        // Refused: all ones, which is no page's number.
        let start = before.checked_mul(PAGE)?;
        Some((start, start.checked_add(pages.checked_mul(PAGE)?)?))
    }

    // SAFETY: blocks are apart from each other, as large and aligned as asked for, and stay where they are.
    unsafe impl GlobalAlloc for Allocator {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: one thread, and nothing below allocates.
            let heap = unsafe { &mut *self.0.get() };
            if !heap.has_begun() {
                let start = MEMORY.0.get().expose_provenance();
                heap.begin((start, start + ARENA));
            }
            // SAFETY: the arena and what the host adds are nobody else's.
            let block = unsafe { heap.take(layout, more) };
            ptr::with_exposed_provenance_mut(block)
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as above; the caller gives back what it was given.
            unsafe { (*self.0.get()).give_back(block.expose_provenance(), layout) }
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
            // SAFETY: as above.
            let heap = unsafe { &mut *self.0.get() };
            if heap.fit(block.expose_provenance(), layout, bytes) {
                return block;
            }
            // SAFETY: the caller's promises are those that these ask for; both blocks hold the smaller of both sizes.
            unsafe {
                let larger = Layout::from_size_align_unchecked(bytes, layout.align());
                let moved = self.alloc(larger);
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(block, moved, layout.size().min(bytes));
                    self.dealloc(block, layout);
                }
                moved
            }
        }
    }
}

#[cfg(target_family = "wasm")]
pub use global::Allocator;

#[cfg(test)]
#[allow(unsafe_code, reason = "blocks are written to")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_block_holds_what_it_was_asked_for_and_no_size_wastes_more_than_a_quarter() {
        let mut before = size_of_block(1).unwrap();
        for bytes in (1..100_000).chain([1 << 20, (1 << 20) + 1, 5_000_001, 1 << 30]) {
            let (size, number) = size_of_block(bytes).unwrap();
            assert!(
                size >= bytes && size.is_multiple_of(ALIGN),
                "{bytes}: {size}"
            );
            assert!(size <= bytes + ALIGN.max(bytes / 4), "{bytes}: {size}");
            assert!((size, number) >= before, "{bytes}: {size}, {number}");
            assert_eq!(size == before.0, number == before.1, "{bytes}");
            before = (size, number);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Take { bytes: usize, align: usize },
        Free(prop::sample::Index),
        Resize(prop::sample::Index, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = prop_oneof![4 => 1..200_usize, 1 => 1..5_000_usize];
        prop_oneof![
            3 => (bytes.clone(), 0..7_u32)
                .prop_map(|(bytes, align)| Step::Take { bytes, align: 1 << align }),
            2 => any::<prop::sample::Index>().prop_map(Step::Free),
            2 => (any::<prop::sample::Index>(), bytes)
                .prop_map(|(which, bytes)| Step::Resize(which, bytes)),
        ]
    }

    struct Block {
        place: usize,
        layout: Layout,
        fill: u8,
    }

    impl Block {
        fn write(&self) {
            let memory = ptr::with_exposed_provenance_mut::<u8>(self.place);
            // SAFETY: the block lies in one of the test's stretches.
            unsafe { ptr::write_bytes(memory, self.fill, self.layout.size()) };
        }

        fn is_whole(&self, bytes: usize) -> bool {
            let memory = ptr::with_exposed_provenance::<u8>(self.place);
            // SAFETY: as above.
            let block = unsafe { std::slice::from_raw_parts(memory, bytes) };
            block.iter().all(|byte| *byte == self.fill)
        }
    }

    proptest! {
        #[test]
        fn blocks_keep_what_is_written_into_them(steps in prop::collection::vec(step(), 1..400), apart in any::<bool>()) {
            let mut memory = vec![0_u64; 1 << 19];
            let start = memory.as_mut_ptr().expose_provenance();
            let whole = start + (memory.len() << 3);
            let mut given = start + (4 << 10);
            let mut heap = Heap::new();
            prop_assert!(!heap.has_begun());
            heap.begin((start, given));
            prop_assert!(heap.has_begun());
            // What the host adds follows on what was there, or does not.
            let mut more = |bytes: usize| {
                let from = given + if apart { 64 } else { 0 };
                let to = from + bytes.div_ceil(1 << 10) * (1 << 10);
                (to <= whole).then(|| {
                    given = to;
                    (from, to)
                })
            };
            let mut blocks: Vec<Block> = Vec::new();
            for (fill, step) in (1..=250_u8).cycle().zip(steps) {
                match step {
                    Step::Take { bytes, align } => {
                        let layout = Layout::from_size_align(bytes, align).unwrap();
                        // SAFETY: the memory is the heap's while this test runs.
                        let place = unsafe { heap.take(layout, &mut more) };
                        if place == 0 {
                            continue;
                        }
                        prop_assert!(place.is_multiple_of(align) && place >= start && place + bytes <= whole);
                        let block = Block { place, layout, fill };
                        block.write();
                        blocks.push(block);
                    }
                    Step::Free(which) if !blocks.is_empty() => {
                        let block = blocks.swap_remove(which.index(blocks.len()));
                        prop_assert!(block.is_whole(block.layout.size()));
                        // SAFETY: it was taken so, and is forgotten.
                        unsafe { heap.give_back(block.place, block.layout) };
                    }
                    Step::Resize(which, bytes) if !blocks.is_empty() => {
                        let at = which.index(blocks.len());
                        let block = &mut blocks[at];
                        if heap.fit(block.place, block.layout, bytes) {
                            prop_assert!(block.is_whole(block.layout.size().min(bytes)));
                            block.layout = Layout::from_size_align(bytes, block.layout.align()).unwrap();
                            block.write();
                        }
                    }
                    _ => {}
                }
            }
            for block in &blocks {
                prop_assert!(block.is_whole(block.layout.size()), "{:?}", block.layout);
            }
        }
    }
}
