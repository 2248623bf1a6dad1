//! What a rule alone says.

use serde_json::json;
use weir_rules::backoff::Backoff;

use super::{Demo, RULE};

pub(crate) fn backoff() -> Demo {
    let theirs = [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 1_800];
    let ours: Vec<u64> = (1..=10)
        .map(|attempt| Backoff::default().ceiling(attempt) / 1_000)
        .collect();
    Demo {
        key: "backoff",
        title: "the longest backoff before attempt 1, 2, 3 ..., in seconds",
        how: RULE,
        holds: ours == theirs,
        theirs: json!({ "ceilings_s": theirs }),
        ours: json!({ "ceilings_s": ours }),
    }
}
