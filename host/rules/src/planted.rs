//! Rules that are broken on purpose, to see that the simulation finds them: a checker that finds nothing proves nothing.
//!
//! Without the feature `planted`, which no release has, every question here is answered with no at compile time.

/// A rule, and how it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Plant {
    /// The window begins at the watermark.
    NoOverlap = 1,
    /// The watermark follows each page, whether the walk ends well or not.
    EarlyWatermark,
    /// The walk's next step is stored before the records of the page are.
    CursorFirst,
    /// A record is known by its id, whatever it says.
    DedupById,
    /// Half of what a vendor asked for is enough.
    ShortWait,
    /// A validator is stored before the page that it vouches for.
    EarlyValidator,
    /// What a walk leaves behind is not listed.
    LostGap,
    /// A gap is closed by a walk that was cut short.
    EarlyClose,
    /// A second look reads the younger half of what is due.
    LooseSettle,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 9] = [
        Plant::NoOverlap,
        Plant::EarlyWatermark,
        Plant::CursorFirst,
        Plant::DedupById,
        Plant::ShortWait,
        Plant::EarlyValidator,
        Plant::LostGap,
        Plant::EarlyClose,
        Plant::LooseSettle,
    ];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Plant::NoOverlap => "no-overlap",
            Plant::EarlyWatermark => "early-watermark",
            Plant::CursorFirst => "cursor-first",
            Plant::DedupById => "dedup-by-id",
            Plant::ShortWait => "short-wait",
            Plant::EarlyValidator => "early-validator",
            Plant::LostGap => "lost-gap",
            Plant::EarlyClose => "early-close",
            Plant::LooseSettle => "loose-settle",
        }
    }
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Breaks this rule from now on, and no other; none: all are whole.
#[cfg(feature = "planted")]
pub fn plant(what: Option<Plant>) {
    let number = what.map_or(0, |what| what as u8);
    PLANTED.store(number, std::sync::atomic::Ordering::Relaxed);
}

/// Is this rule broken?
#[cfg(feature = "planted")]
pub fn is_planted(what: Plant) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == what as u8
}

/// Is this rule broken? Never.
#[cfg(not(feature = "planted"))]
#[inline]
pub const fn is_planted(_: Plant) -> bool {
    false
}
