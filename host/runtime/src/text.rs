//! Foreign text made safe to show.

use std::fmt::Write as _;

/// `text` on one line, without anything that a terminal obeys, cut to at most `max` bytes (and a `…` if cut).
///
/// Control characters and the invisible ones that reorder text are written as escapes.
pub(crate) fn tame(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for c in text.chars() {
        let start = out.len();
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || reorders(c) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
        if out.len() > max {
            out.truncate(start);
            out.push('…');
            break;
        }
    }
    out
}

/// Line separators and the marks that turn the direction of text.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays() {
        assert_eq!(tame("Größe: 3 µs", 100), "Größe: 3 µs");
    }

    #[test]
    fn a_terminal_finds_nothing_to_obey() {
        assert_eq!(
            tame("a\x1b[2Jb\nc\u{9b}31m\u{202e}d", 100),
            "a\\u{1b}[2Jb\\nc\\u{9b}31m\\u{202e}d"
        );
    }

    #[test]
    fn cut_between_characters_and_never_inside_an_escape() {
        assert_eq!(tame("ööö", 4), "öö…");
        assert_eq!(tame("ab\x1b", 4), "ab…");
        assert_eq!(tame("abcd", 4), "abcd");
    }
}
