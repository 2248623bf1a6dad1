//! How wide a window the vendor bears: learnt where an empty answer to a wide one is no proof.

use serde::{Deserialize, Serialize};

use super::{End, Settings, UnitState, length};
use crate::model::{CursorKind, Duration, Reason, Timestamp};
use crate::walk::{Ending, Tally, Walk};

/// Windows up to this are narrow enough to be believed when they are empty, in ms, whatever the unit's interval is.
const NARROW: Duration = 600_000;
/// No narrower window is tried to get a record to show that is known to be there, in ms.
const NARROWEST: Duration = 60_000;
/// Narrow windows that are asked for at most where the newest known record shows in none.
const HIDDEN_WINDOWS: Duration = 48;
/// How long wide windows are left alone after narrow ones have brought nothing, in ms: at first, and at most.
const FIRST_REST: Duration = 3_600_000;
const LONGEST_REST: Duration = 86_400_000;

/// A vendor that answers nothing to a wide window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrow {
    /// The widest window that is asked for, in ms.
    pub width: Duration,
    /// How it stands with it.
    pub stage: Stage,
    /// How long the wide windows were last left alone after narrow ones had brought nothing, in ms.
    pub pause: Duration,
}

/// How far it is known at which width the vendor answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It is being found out at which width the newest known record shows.
    Probing,
    /// It shows at this width: what these windows bring, and that they are empty, can be believed.
    Shown,
    /// It shows at no width: it may be gone. What these windows bring is taken; that they are empty proves nothing.
    Hidden,
    /// They brought nothing: asked in wide windows again, and in narrow ones not before that time, by this machine's clock.
    Resting {
        /// Until when.
        until: Timestamp,
    },
    /// The narrow windows brought what the wide one had not shown: none is wider, for good.
    Proven,
}

impl Narrow {
    /// No window is wider than this, in ms.
    pub fn cap(&self) -> Option<Duration> {
        match self.stage {
            Stage::Resting { .. } => None,
            _ => Some(self.width),
        }
    }
}

impl UnitState {
    /// An empty answer to a wide window that ought to hold the newest record that is known. It is not believed: the window
    /// is asked for again in narrow parts. True: nothing of this walk counts.
    pub(super) fn is_unproven(&mut self, settings: &Settings, walk: &Walk, end: &End<'_>) -> bool {
        let (Some(since), Some(watermark)) = (walk.window.since, self.watermark) else {
            return false;
        };
        let ought_to_show = since <= watermark && watermark < walk.window.until;
        let empty =
            end.ending == Ending::Complete && end.tally.records == 0 && end.tally.not_modified == 0;
        if settings.stream.cursor != CursorKind::Timestamp
            || walk.reason == Reason::Resync
            || !(empty && ought_to_show)
        {
            return false;
        }
        let width = walk.window.until.abs_diff(since);
        let usual = self
            .overlap(settings)
            .saturating_add(settings.interval.ceiling())
            .saturating_mul(2)
            .max(NARROW);
        let wide = !walk.capped && settings.stream.window_cap.is_none() && width > usual;
        let pause = self.narrow.map_or(0, |narrow| narrow.pause);
        let probing = |width| Narrow {
            width,
            stage: Stage::Probing,
            pause,
        };
        let narrow = match self.narrow {
            None if wide => probing(usual),
            Some(Narrow {
                stage: Stage::Resting { until },
                ..
            }) if wide && until <= end.now => probing(usual),
            Some(narrow) if narrow.stage == Stage::Probing => {
                let half = narrow.width / 2;
                if half >= NARROWEST {
                    probing(half)
                } else {
                    let all = self.clock.now(end.now).abs_diff(since);
                    Narrow {
                        width: usual.max(all / HIDDEN_WINDOWS),
                        stage: Stage::Hidden,
                        pause,
                    }
                }
            }
            _ => return false,
        };
        self.narrow = Some(narrow);
        self.resume = Some(since);
        true
    }

    /// The window's emptiness would be proof enough to go on from its end: it is no wider than the vendor bears.
    pub(super) fn is_proof(&self, walk: &Walk, tally: &Tally) -> bool {
        let came = tally.records > 0;
        match self.narrow.map(|narrow| narrow.stage) {
            None | Some(Stage::Resting { .. }) => walk.capped,
            // The last of the narrow windows of a catch-up is as good a proof as those before it.
            Some(Stage::Shown | Stage::Proven) => true,
            Some(Stage::Probing | Stage::Hidden) => came && walk.capped,
        }
    }

    /// What the windows of a catch-up have shown of the width that the vendor bears. Returns what to say of it.
    pub(super) fn learn_width(&mut self, tally: &Tally, now: Timestamp) -> Option<String> {
        let narrow = self.narrow.as_mut()?;
        let came = tally.records > 0 || tally.not_modified > 0;
        match narrow.stage {
            Stage::Proven => return None,
            Stage::Resting { .. } => {
                if came {
                    self.narrow = None;
                }
                return None;
            }
            Stage::Probing | Stage::Hidden if came => narrow.stage = Stage::Shown,
            Stage::Probing | Stage::Hidden | Stage::Shown => {}
        }
        if tally.productive() && narrow.stage == Stage::Shown {
            narrow.stage = Stage::Proven;
            return Some(format!(
                "the vendor answers nothing to windows that are too wide for it: none is wider than {} from now on",
                length(narrow.width)
            ));
        }
        if self.resume.is_none() {
            self.narrow = (narrow.stage == Stage::Hidden).then(|| {
                let pause = narrow
                    .pause
                    .saturating_mul(2)
                    .clamp(FIRST_REST, LONGEST_REST);
                Narrow {
                    stage: Stage::Resting {
                        until: now.saturating_add_unsigned(pause),
                    },
                    pause,
                    ..*narrow
                }
            });
        }
        None
    }
}
