//! How times, sizes and tables look to a person.

use weir_rules::model::Timestamp;

/// `2031-03-04 10:00:00Z`
pub(crate) fn moment(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at).map_or_else(
        |_| at.to_string(),
        |at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}

/// `3 s`, `12 min`, `5 h`, `2 d`, of a length in ms.
pub(crate) fn length(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// `900 bytes`, `12 KiB`, `3 MiB`.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..10_240 => format!("{n} bytes"),
        10_240..10_485_760 => format!("{} KiB", n >> 10),
        _ => format!("{} MiB", n >> 20),
    }
}

/// `1 record`, `2 records`.
pub(crate) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `in 3 s` or `3 s ago`.
pub(crate) fn from_now(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("in {}", length(at.abs_diff(now)))
    } else {
        format!("{} ago", length(at.abs_diff(now)))
    }
}

/// Columns as wide as they need to be, under their heads.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (cell, width) in cells.zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(cell.chars().count()) + 2,
            ));
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    };
    let mut text = line(&mut heads.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let text = table(
            &["unit", "n"],
            &[
                vec!["a".into(), "1".into()],
                vec!["long name".into(), "22".into()],
            ],
        );
        assert_eq!(text, "unit       n\na          1\nlong name  22\n");
    }

    #[test]
    fn lengths_and_moments_read_well() {
        assert_eq!(length(900), "900 ms");
        assert_eq!(length(61_000), "61 s");
        assert_eq!(length(3_600_000), "60 min");
        assert_eq!(from_now(5_000, 0), "in 5 s");
        assert_eq!(from_now(0, 5_000), "5 s ago");
        assert_eq!(moment(1_930_384_800_000), "2031-03-04 10:00:00Z");
    }
}
