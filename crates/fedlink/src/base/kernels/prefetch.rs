//! Memory that will be read soon.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for all of `values` to be brought near the processor while it does other work. It changes nothing but
/// the time that reading them takes.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = values.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: the instruction is part of every x86-64 processor; it reads and writes nothing that a
            // program can see, and does nothing for an address that cannot be read. This one lies in
            // `values`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// As [`prefetch`], to the second cache: the nearest one keeps what is in use.
#[inline(always)]
fn prefetch_second(values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        for line in values.chunks(LINE / size_of::<f32>()) {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast::<i8>()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Memory that the work after the one at hand will read, asked for a little at a time while this one leaves
/// memory idle: all at once, the processor would wait for it.
#[derive(Debug, Default)]
pub struct Ahead<'a> {
    slices: [&'a [f32]; 3],
    /// Floats of each slice that are asked for at a time.
    piece: usize,
}

impl<'a> Ahead<'a> {
    /// All of `slices`.
    pub fn new(slices: [&'a [f32]; 3]) -> Self {
        Self { slices, piece: 0 }
    }

    /// Spreads what is left over `calls` of [`Ahead::next`].
    pub(super) fn spread(&mut self, calls: usize) {
        let longest = self.slices.iter().map(|slice| slice.len()).max().unwrap_or(0);
        self.piece = longest.div_ceil(calls.max(1)).next_multiple_of(LINE / size_of::<f32>());
    }

    /// Asks for the next piece of each slice.
    #[inline(always)]
    pub(super) fn next(&mut self) {
        for slice in &mut self.slices {
            let (now, later) = slice.split_at(self.piece.min(slice.len()));
            prefetch_second(now);
            *slice = later;
        }
    }
}
