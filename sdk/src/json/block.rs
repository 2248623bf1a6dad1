//! Many bytes at once: where in a block of text the characters stand that give JSON its shape.
//!
//! A mask has one bit per byte, the first byte's lowest. Guests use the 128-bit instructions that every engine for
//! components has; elsewhere, and in guests built without them, eight bytes are looked at in one register.

/// Bytes in a block that is searched for the end of a string.
pub(super) const SHORT: usize = 16;
/// Bytes in a block that is searched for brackets.
pub(super) const LONG: usize = 64;

/// Where a string may end: its quotes and backslashes.
#[inline]
pub(super) fn string_ends(block: &[u8; SHORT]) -> u32 {
    let bytes = lanes::load(block);
    u32::from(lanes::equal(bytes, b'"') | lanes::equal(bytes, b'\\'))
}

/// What gives a block its shape.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    pub(super) opening: u64,
    pub(super) closing: u64,
}

impl Shape {
    #[inline]
    pub(super) fn of(block: &[u8; LONG]) -> Self {
        let mut shape = Shape::default();
        let (parts, _) = block.as_chunks::<SHORT>();
        for (index, part) in parts.iter().enumerate() {
            let shift = index * SHORT;
            let bytes = lanes::load(part);
            // `[` and `{`, `]` and `}` differ in one bit.
            let folded = lanes::with_bit(bytes, 0x20);
            shape.quotes |= u64::from(lanes::equal(bytes, b'"')) << shift;
            shape.backslashes |= u64::from(lanes::equal(bytes, b'\\')) << shift;
            shape.opening |= u64::from(lanes::equal(folded, b'{')) << shift;
            shape.closing |= u64::from(lanes::equal(folded, b'}')) << shift;
        }
        shape
    }
}

/// What is carried from one block to the next.
#[derive(Default)]
pub(super) struct Carry {
    /// All ones inside of a string.
    string: u64,
    /// 1 if the first byte of the next block is escaped.
    escaped: u64,
}

impl Carry {
    /// Which bytes are inside of strings, opening quotes included and closing quotes not.
    #[inline]
    pub(super) fn strings(&mut self, shape: &Shape) -> u64 {
        let quotes = shape.quotes & !self.escapes(shape.backslashes);
        let strings = prefix_xor(quotes) ^ self.string;
        self.string = if strings >> 63 == 1 { u64::MAX } else { 0 };
        strings
    }

    /// Which bytes stand after a backslash that is not itself escaped. A run of backslashes escapes every second byte
    /// from its start on; adding the run's first bit to the run carries out at its end, which tells whether its length is odd.
    #[inline]
    fn escapes(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        if backslashes == 0 {
            return std::mem::take(&mut self.escaped);
        }
        let backslashes = backslashes & !self.escaped;
        let after = (backslashes << 1) | self.escaped;
        let odd_starts = backslashes & !EVEN & !after;
        let (ends, overflow) = odd_starts.overflowing_add(backslashes);
        self.escaped = u64::from(overflow);
        (EVEN ^ (ends << 1)) & after
    }
}

/// Each bit becomes the parity of the bits up to and with it.
#[inline]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod lanes {
    use core::arch::wasm32::{i8x16_bitmask, i8x16_eq, u8x16_splat, u64x2, v128, v128_or};

    use super::SHORT;

    #[inline]
    pub(super) fn load(block: &[u8; SHORT]) -> v128 {
        let bits = u128::from_le_bytes(*block);
        u64x2(bits as u64, (bits >> 64) as u64)
    }

    #[inline]
    pub(super) fn equal(bytes: v128, wanted: u8) -> u16 {
        i8x16_bitmask(i8x16_eq(bytes, u8x16_splat(wanted)))
    }

    #[inline]
    pub(super) fn with_bit(bytes: v128, bit: u8) -> v128 {
        v128_or(bytes, u8x16_splat(bit))
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod lanes {
    use super::SHORT;

    const ONES: u64 = 0x0101_0101_0101_0101;
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;

    #[inline]
    pub(super) fn load(block: &[u8; SHORT]) -> [u64; 2] {
        let bits = u128::from_le_bytes(*block);
        [bits as u64, (bits >> 64) as u64]
    }

    #[inline]
    pub(super) fn equal(bytes: [u64; 2], wanted: u8) -> u16 {
        let [low, high] = bytes.map(|word| {
            let differs = word ^ (ONES * u64::from(wanted));
            // The top bit of each byte that is zero; no carry leaves a byte.
            let zero = !(((differs & LOW) + LOW) | differs | LOW);
            // Gathers the eight top bits.
            ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
        });
        low | high << 8
    }

    #[inline]
    pub(super) fn with_bit(bytes: [u64; 2], bit: u8) -> [u64; 2] {
        bytes.map(|word| word | (ONES * u64::from(bit)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn masks_are_those_of_a_loop(block in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"[]{}\"\\".to_vec())], LONG)) {
            let block: [u8; LONG] = block.try_into().unwrap();
            let shape = Shape::of(&block);
            let mask = |wanted: &[u8]| {
                block.iter().rev().fold(0_u64, |mask, byte| mask << 1 | u64::from(wanted.contains(byte)))
            };
            prop_assert_eq!(shape.quotes, mask(b"\""));
            prop_assert_eq!(shape.backslashes, mask(b"\\"));
            prop_assert_eq!(shape.opening, mask(b"[{"));
            prop_assert_eq!(shape.closing, mask(b"]}"));
            let short: [u8; SHORT] = block[..SHORT].try_into().unwrap();
            prop_assert_eq!(u64::from(string_ends(&short)), mask(b"\"\\") & 0xffff);
        }

        #[test]
        fn strings_are_those_of_a_loop(text in prop::collection::vec(prop::sample::select(b"\"\\\\x".to_vec()), LONG * 3)) {
            let (mut string, mut escaped) = (false, false);
            let slow: Vec<bool> = text
                .iter()
                .map(|byte| {
                    // Backslashes count outside of strings too: there is none in JSON that is whole.
                    let quote = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    string ^= quote;
                    string
                })
                .collect();
            let mut carry = Carry::default();
            let fast: Vec<bool> = text
                .as_chunks::<LONG>()
                .0
                .iter()
                .map(|block| carry.strings(&Shape::of(block)))
                .flat_map(|strings| (0..LONG).map(move |bit| strings >> bit & 1 == 1))
                .collect();
            prop_assert_eq!(fast, slow);
        }
    }
}
