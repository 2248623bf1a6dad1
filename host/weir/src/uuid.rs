//! Keys that no two requests share: UUIDs of version 4 (RFC 9562, section 5.4).

use rand::{Rng, RngExt as _};

/// A new one.
pub fn v4<R: Rng + ?Sized>(rng: &mut R) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let bits: u128 = rng.random();
    let bits = (bits & !VERSION & !VARIANT) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let mut parts = [8, 4, 4, 4, 12].into_iter();
    let mut text = String::with_capacity(36);
    let mut left = parts.next().unwrap_or_default();
    for digit in hex.chars() {
        if left == 0 {
            text.push('-');
            left = parts.next().unwrap_or_default();
        }
        text.push(digit);
        left -= 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn it_has_the_form_the_version_and_the_variant() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut before = String::new();
        for _ in 0..100 {
            let key = v4(&mut rng);
            let lengths: Vec<usize> = key.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{key}");
            assert_eq!(key.as_bytes()[14], b'4', "{key}");
            assert!(b"89ab".contains(&key.as_bytes()[19]), "{key}");
            assert_ne!(key, before);
            before = key;
        }
    }
}
