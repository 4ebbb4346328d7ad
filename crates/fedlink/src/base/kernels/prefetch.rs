//! Prefetching of memory.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Fetches all of `values` into the cache while the processor does other work. It changes only the time
/// of reading them.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = values.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: the instruction is part of every x86-64 processor. It reads and writes nothing that
            // a program can see, and has no effect on an address that cannot be read. This address lies
            // in `values`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// As [`prefetch`], into the second-level cache, so that data in use stay in the first.
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

/// Memory that the next step reads, fetched piece by piece while the current step leaves memory idle. If
/// all of it were fetched at once, the processor would wait.
#[derive(Debug, Default)]
pub struct Ahead<'a> {
    slices: [&'a [f32]; 3],
    /// Floats of each slice that are fetched at a time.
    piece: usize,
}

impl<'a> Ahead<'a> {
    /// All of `slices`.
    pub fn new(slices: [&'a [f32]; 3]) -> Self {
        Self { slices, piece: 0 }
    }

    /// Spreads the rest over `calls` of [`Ahead::next`].
    pub(super) fn spread(&mut self, calls: usize) {
        let longest = self.slices.iter().map(|slice| slice.len()).max().unwrap_or(0);
        self.piece = longest.div_ceil(calls.max(1)).next_multiple_of(LINE / size_of::<f32>());
    }

    /// Fetches the next piece of each slice.
    #[inline(always)]
    pub(super) fn next(&mut self) {
        for slice in &mut self.slices {
            let (now, later) = slice.split_at(self.piece.min(slice.len()));
            prefetch_second(now);
            *slice = later;
        }
    }
}
