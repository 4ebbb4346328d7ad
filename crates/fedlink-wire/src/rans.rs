//! The entropy coder: a message is one large number.
//!
//! Range asymmetric numeral systems (Duda, *Asymmetric numeral systems*, 2013). Encoding a symbol that
//! owns `width` slots from `start` among 2³² changes the number X by
//!
//! > X ← ⌊X / width⌋·2³² + start + (X mod width)
//!
//! which multiplies X by 2³²/width, that is, adds −log2 of the symbol's probability to its bits. To
//! decode it, find the owner of slot X mod 2³² and let X ← width·⌊X / 2³²⌋ + slot − start. That is the
//! exact inverse, so the symbol encoded last is decoded first.
//!
//! X is stored as a window of at most 64 bits and 16-bit words below it. Before a symbol is encoded,
//! words move out of the window until the step cannot overflow it; after a symbol is decoded, words move
//! in until the window is full (at least 2⁴⁸) or none is left. Each undoes the other exactly, also for
//! the small numbers at a message's beginning: as long as no word has moved out there is none to move in.
//! So every number has exactly one form, and a message costs the bits of its number.
//!
//! [`longest`] bounds the cost of rounding.

use std::hint::select_unpredictable;

/// The number of slots.
pub(crate) const SLOTS: u64 = 1 << 32;

/// A window of this size or more is full.
const FULL: u64 = 1 << 48;

/// The most bits of a message that begins with a number below 2³³ and whose symbols have `information`
/// bits in all, −log2 of their probabilities.
///
/// With y = X/2³², π = width/2³² and a = ⌊y/π⌋, encoding a symbol makes y' ≤ a + (1 − π) + (y − a·π),
/// because
///
/// > y' + 1 ≤ (y + 1)/π.
///
/// So as long as no word moves, X + 2³² grows by at most the factor 1/π, and a message that begins below
/// 2³³
///
/// Once words have moved, a ≥ 2¹⁶, and the surplus of a symbol is at most log2(1 + (1 − π)/a) < 1.443·(1 −
/// π)/a. From symbol to symbol a grows as 1/π, so (1 − π)/a is at most the difference of 1/a before and
/// after, until words move: the sum from one time to the next is below 2·2⁻¹⁶, or 4.5·10⁻⁵ bits for 16 bits
/// and more of message.
pub(crate) fn longest(information: f64) -> u64 {
    let rounding = 3e-6 * (information + 40.0);
    (32.0 + libm::log2(3.0) + information + rounding) as u64 + 1
}

/// The slots of a symbol, `width` of them from `start`: at least one and never all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    pub start: u32,
    pub width: u32,
}

impl Slots {
    /// The slots from `start` up to `end`.
    #[inline]
    pub(crate) fn between(start: u64, end: u64) -> Self {
        debug_assert!(start < end && end <= SLOTS && end - start < SLOTS, "{start}..{end}");
        Self { start: start as u32, width: (end - start) as u32 }
    }

    /// The slots of "yes", the first `yes` slots, or those of "no".
    pub(crate) fn answer(yes: u32, answer: bool) -> Self {
        if answer { Self { start: 0, width: yes } } else { Self::between(u64::from(yes), SLOTS) }
    }
}

/// A symbol with the inverse that saves the writer a division, the slowest operation on many processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    slots: Slots,
    /// v = ⌊(2⁶⁴ − 1)/width⌋.
    inverse: u64,
}

impl Prepared {
    pub(crate) fn new(slots: Slots) -> Self {
        Self { slots, inverse: u64::MAX / u64::from(slots.width) }
    }

    /// ⌊`window`/width⌋ and the rest, for a window below 2³²·width.
    ///
    /// With v = (2⁶⁴ − e)/width, 1 ≤ e ≤ width, the product window·v/2⁶⁴ is window/width less
    /// window·e/(2⁶⁴·width), which is below 2³²·e/2⁶⁴ < 1. Rounded down, it is the quotient or one less.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see Writer's documentation")]
    fn divide(&self, window: u64) -> (u64, u64) {
        let width = u64::from(self.slots.width);
        let quotient = ((u128::from(window) * u128::from(self.inverse)) >> 64) as u64;
        let rest = window - quotient * width;
        let less = rest >= width;
        (quotient + u64::from(less), select_unpredictable(less, rest.wrapping_sub(width), rest))
    }
}

/// Encodes symbols.
///
/// Functions pass writers and readers by value: behind a reference their fields would live in memory, and
/// each symbol would wait for a store and a load of the last one.
pub(crate) struct Writer<'a> {
    window: u64,
    /// The words below the window are at the end; they grow toward the beginning.
    memory: &'a mut Vec<u8>,
    first: usize,
}

impl<'a> Writer<'a> {
    /// The message that is the number `start`. The content of `memory` is overwritten.
    pub(crate) fn new(start: u64, memory: &'a mut Vec<u8>) -> Self {
        let first = memory.len();
        Self { window: start, memory, first }
    }

    /// Encodes a symbol.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see the type's documentation")]
    pub(crate) fn put(&mut self, symbol: Slots) {
        self.shrink_for(symbol);
        let width = u64::from(symbol.width);
        self.window = ((self.window / width) << 32) + u64::from(symbol.start) + self.window % width;
    }

    /// Encodes a symbol whose division is prepared.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see the type's documentation")]
    pub(crate) fn put_prepared(&mut self, symbol: &Prepared) {
        self.shrink_for(symbol.slots);
        let (quotient, rest) = symbol.divide(self.window);
        self.window = (quotient << 32) + u64::from(symbol.slots.start) + rest;
    }

    /// Moves words out of the window until it is below 2³²·width.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see the type's documentation")]
    fn shrink_for(&mut self, symbol: Slots) {
        let limit = u64::from(symbol.width) << 32;
        // A window below the limit stays below 2⁶⁴. One word must go about half of the time, so there is
        // no branch.
        self.store();
        let over = self.window >= limit;
        self.first -= 2 * usize::from(over);
        self.window = select_unpredictable(over, self.window >> 16, self.window);
        if self.window >= limit {
            self.store();
            self.first -= 2;
            self.window >>= 16;
        }
    }

    /// Writes the window just before the words below it, so that its low word can stay there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see the type's documentation")]
    fn store(&mut self) {
        if self.first < 8 {
            self.first = make_room(self.memory, self.first);
        }
        self.memory[self.first - 8..self.first].copy_from_slice(&self.window.to_be_bytes());
    }

    /// The number, big-endian, without leading zero bytes.
    pub(crate) fn finish(mut self, message: &mut Vec<u8>) {
        self.store();
        let zeros = self.window.leading_zeros() as usize / 8;
        message.clear();
        message.extend_from_slice(&self.memory[self.first - 8 + zeros..]);
    }
}

/// Makes room before the bytes of `memory` from `first` on; returns their new position.
#[cold]
fn make_room(memory: &mut Vec<u8>, first: usize) -> usize {
    let (old, new) = (memory.len(), 2 * memory.len() + 64);
    memory.resize(new, 0);
    memory.copy_within(first..old, first + new - old);
    first + new - old
}

/// Decodes symbols.
pub(crate) struct Reader<'a> {
    window: u64,
    /// The words below the window.
    words: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The message that is the big-endian number `message`; none if that is zero or begins with a zero byte.
    pub(crate) fn new(message: &'a [u8]) -> Option<Self> {
        message.first().filter(|&&byte| byte != 0)?;
        // A full window is 7 or 8 bytes long, so that whole words remain.
        let top = if message.len() < 8 { message.len() } else { 8 - message.len() % 2 };
        let (top, words) = message.split_at(top);
        Some(Self { window: top.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)), words })
    }

    /// The slot of the next symbol.
    #[inline]
    pub(crate) fn slot(&self) -> u32 {
        self.window as u32
    }

    /// Decodes `symbol`, the owner of the present slot.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see Writer's documentation")]
    pub(crate) fn take(&mut self, symbol: Slots) {
        self.window = self.without(symbol);
        self.refill();
    }

    /// Decodes one of two symbols, the second if `is_second`. Both products are computed before the
    /// choice is known.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see Writer's documentation")]
    pub(crate) fn take_either(&mut self, [first, second]: [Slots; 2], is_second: bool) {
        self.window = select_unpredictable(is_second, self.without(second), self.without(first));
        self.refill();
    }

    /// The window after decoding `symbol`, the owner of the present slot.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see Writer's documentation")]
    fn without(&self, symbol: Slots) -> u64 {
        let offset = self.slot().wrapping_sub(symbol.start);
        u64::from(symbol.width) * (self.window >> 32) + u64::from(offset)
    }

    /// Moves words into the window until it is full.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see Writer's documentation")]
    fn refill(&mut self) {
        let Some((word, words)) = self.words.split_first_chunk() else { return };
        let refill = self.window < FULL;
        let fed = self.window << 16 | u64::from(u16::from_be_bytes(*word));
        self.window = select_unpredictable(refill, fed, self.window);
        self.words = select_unpredictable(refill, words, self.words);
        if self.window < FULL
            && let Some((word, words)) = self.words.split_first_chunk()
        {
            self.window = self.window << 16 | u64::from(u16::from_be_bytes(*word));
            self.words = words;
        }
    }

    /// Decodes an answer; "yes" owns the first `yes` slots.
    pub(crate) fn take_answer(&mut self, yes: u32) -> bool {
        let answer = self.slot() < yes;
        self.take(Slots::answer(yes, answer));
        answer
    }

    /// Whether the remaining number is below 2³², which no valid message reaches; decoding symbols does
    /// not increase it.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.words.is_empty() && self.window < SLOTS
    }

    /// The remaining number: the window, and the number of bytes below it.
    pub(crate) fn rest(&self) -> (u64, usize) {
        (self.window, self.words.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots() -> impl Strategy<Value = Slots> {
        let widths = prop_oneof![1..20u64, 1..1u64 << 16, 1..SLOTS, SLOTS - 20..SLOTS];
        (widths, any::<u64>()).prop_map(|(width, at)| {
            let start = at % (SLOTS - width + 1);
            Slots::between(start, start + width)
        })
    }

    /// The definition, in 128-bit numbers that need no words.
    fn put_on(number: u128, symbol: Slots) -> Option<u128> {
        let width = u128::from(symbol.width);
        Some((number / width).checked_mul(1 << 32)? + u128::from(symbol.start) + number % width)
    }

    fn write(start: u64, symbols: &[Slots]) -> Vec<u8> {
        let (mut memory, mut message) = (vec![0xaa; 5], Vec::new());
        let mut writer = Writer::new(start, &mut memory);
        for (i, &symbol) in symbols.iter().enumerate() {
            if i % 2 == 0 { writer.put(symbol) } else { writer.put_prepared(&Prepared::new(symbol)) }
        }
        writer.finish(&mut message);
        message
    }

    proptest! {
        #[test]
        fn decoding_returns_the_symbols_in_reverse_and_leaves_the_start(
            start in 1..1u64 << 40, symbols in prop::collection::vec(slots(), 0..200),
        ) {
            let message = write(start, &symbols);
            let mut reader = Reader::new(&message).unwrap();
            for &symbol in symbols.iter().rev() {
                prop_assert!(reader.slot().wrapping_sub(symbol.start) < symbol.width);
                reader.take(symbol);
            }
            prop_assert_eq!(reader.rest(), (start, 0));
        }

        #[test]
        fn a_prepared_division_equals_a_division(
            symbol in slots(),
            high in any::<u32>(),
            low in any::<u64>(),
            near in 0..3u64,
        ) {
            let (width, prepared) = (u64::from(symbol.width), Prepared::new(symbol));
            // Any number below the limit, and the neighbors of a multiple of the width.
            let any = (u64::from(high) * width) + low % width;
            let multiple = (u64::from(high) * width).saturating_sub(near);
            let max = (width << 32) - 1 - near.min(width - 1);
            for window in [any, multiple, max] {
                prop_assert_eq!(prepared.divide(window), (window / width, window % width));
            }
        }

        #[test]
        fn take_either_decodes_the_same_as_take(
            bytes in prop::collection::vec(1..=u8::MAX, 1..40),
            cut in 1..u32::MAX,
        ) {
            let (mut either, mut alone) = (Reader::new(&bytes).unwrap(), Reader::new(&bytes).unwrap());
            for _ in 0..20 {
                let answer = alone.take_answer(cut);
                either.take_either([Slots::answer(cut, true), Slots::answer(cut, false)], !answer);
                prop_assert_eq!((either.window, either.words), (alone.window, alone.words));
            }
        }

        #[test]
        fn encoding_the_decoded_form_of_any_bytes_gives_the_same_bytes(
            message in prop::collection::vec(any::<u8>(), 0..60),
            // Every answer removes at least 1/256 of the number, so that any message ends.
            yes in prop::collection::vec(1u32 << 24..255 << 24, 1..80), more in 0..20usize,
        ) {
            let Some(mut reader) = Reader::new(&message) else {
                prop_assert!(message.first().is_none_or(|&byte| byte == 0));
                return Ok(());
            };
            let mut answers = Vec::new();
            let mut yes = yes.iter().copied().cycle();
            // `write` cannot begin with a rest that has words left.
            while reader.rest().1 > 0 {
                let yes = yes.next().unwrap();
                answers.push(Slots::answer(yes, reader.take_answer(yes)));
            }
            for yes in yes.take(more) {
                answers.push(Slots::answer(yes, reader.take_answer(yes)));
            }
            answers.reverse();
            prop_assert_eq!(write(reader.rest().0, &answers), message);
        }

        #[test]
        fn a_message_that_fits_the_window_is_the_number_of_the_definition(
            start in 1..1u64 << 33, symbols in prop::collection::vec(slots(), 0..6),
        ) {
            // Below 2⁶⁴ no word ever moves: the symbols before the first that would exceed it.
            let numbers = symbols.iter().scan(u128::from(start), |number, &symbol| {
                *number = put_on(*number, symbol)?;
                (*number < 1 << 64).then_some(*number)
            });
            let numbers: Vec<u128> = std::iter::once(u128::from(start)).chain(numbers).collect();
            let symbols = &symbols[..numbers.len() - 1];
            let bytes = numbers[symbols.len()].to_be_bytes();
            let written = bytes.iter().skip_while(|&&byte| byte == 0).copied().collect::<Vec<u8>>();
            prop_assert_eq!(write(start, symbols), written);
        }

        #[test]
        fn a_message_has_as_many_bits_as_the_information_of_its_symbols(
            value in any::<u32>(), symbols in prop::collection::vec(slots(), 0..300), high in any::<bool>(),
        ) {
            // High symbols have the largest rounding error.
            let up = |symbol: Slots| Slots { start: (SLOTS - u64::from(symbol.width)) as u32, ..symbol };
            let raised = |symbol| if high { up(symbol) } else { symbol };
            let symbols: Vec<Slots> = symbols.into_iter().map(raised).collect();
            let start = SLOTS + u64::from(value);
            let bits = bits(&write(start, &symbols));
            let information: f64 = symbols.iter().map(|&symbol| information(symbol)).sum();
            prop_assert!(bits <= longest(information), "{} bits for {}", bits, information);
            let min = (start as f64).log2() + information - 1.01;
            prop_assert!(bits as f64 > min, "{} bits for {}", bits, information);
        }
    }

    fn bits(message: &[u8]) -> u64 {
        8 * message.len() as u64 - u64::from(message[0].leading_zeros())
    }

    fn information(symbol: Slots) -> f64 {
        32.0 - f64::from(symbol.width).log2()
    }

    #[test]
    fn rounding_costs_no_more_than_the_proved_bound() {
        // Symbols of about 16 bits keep the window as it is, at its emptiest if it begins so; symbols of
        // less than a bit are many; and all are at the upper end of the slots.
        for width in [65_535u32, 65_536, 65_537, 70_000, 1 << 8, 1 << 31, 3 << 30, u32::MAX - 1000, 1] {
            for value in [0, 1, u32::MAX] {
                let symbol = Slots { start: (SLOTS - u64::from(width)) as u32, width };
                let symbols = vec![symbol; 100_000];
                let bits = bits(&write(SLOTS + u64::from(value), &symbols));
                let information = information(symbol) * symbols.len() as f64;
                assert!(bits <= longest(information), "width {width}: {bits} bits, {information}");
                assert!(bits as f64 >= 32.0 + information, "width {width}: {bits} bits, {information}");
            }
        }
    }
}
