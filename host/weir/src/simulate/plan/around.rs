//! What happens to the host: it dies, is stopped, sleeps, has its clock set; its sinks go away; people ask for polls.

use weir_rules::model::Reason;
use weir_tests::dice::Dice;

use super::super::{Burn, Happening, What};
use super::pick;
use crate::config::Config;

pub(super) fn happenings(dice: &mut Dice, config: &Config, until: i64) -> Vec<Happening> {
    let units: Vec<String> = config
        .connections
        .iter()
        .flat_map(|(name, connection)| {
            let streams = connection.streams.iter().flatten();
            streams.map(move |(stream, _)| format!("{name}/{stream}"))
        })
        .collect();
    let count = pick(dice, &[0, 2, 5, 10, 20]);
    let mut happenings: Vec<Happening> = (0..count)
        .map(|_| Happening {
            at: dice.between(0, until).unsigned_abs(),
            what: happening(dice, &units, until),
        })
        .collect();
    happenings.sort_by_key(|happening| happening.at);
    happenings
}

fn happening(dice: &mut Dice, units: &[String], until: i64) -> What {
    let pause = pause(dice, until);
    let within = pick(dice, &[1, 4, 20]);
    let spared = dice.below(within);
    match dice.below(16) {
        0..=3 => What::Fuse {
            // Most of them within a poll or two.
            spared,
            cut: pick(
                dice,
                &[
                    Burn::DieBefore,
                    Burn::DieBefore,
                    Burn::DieAfter,
                    Burn::DieAfter,
                    Burn::Refuse,
                ],
            ),
            pause,
        },
        4..=6 => What::Kill { pause },
        7 | 8 => What::Stop { pause },
        9 | 10 => What::Jump {
            ms: pick(dice, &[-1, 1])
                * pick(dice, &[900, 5_000, 61_000, 600_000, 3_700_000, 90_000_000]),
        },
        11 => What::Sleep {
            ms: dice.between(1_000, until / 6).unsigned_abs(),
        },
        12 => What::SinkDown {
            sink: None,
            ms: dice.between(1_000, until / 6).unsigned_abs(),
        },
        _ if units.is_empty() => What::Kill { pause },
        _ => What::Ask {
            unit: pick(dice, units),
            reason: pick(dice, &[Reason::SyncNow, Reason::SyncNow, Reason::Resync]),
        },
    }
}

/// For how long a host is down: mostly not at all, sometimes for long.
fn pause(dice: &mut Dice, until: i64) -> u64 {
    let longest = pick(dice, &[0, 0, 3_000, 60_000, until / 10]);
    dice.between(0, longest).unsigned_abs()
}
