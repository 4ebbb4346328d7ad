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
            // program can see, and does nothing for an address that cannot be read. This one lies in `values`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
