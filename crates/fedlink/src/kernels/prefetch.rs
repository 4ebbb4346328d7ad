//! Bringing memory near before it is read.

/// Asks the processor to bring `values` into the nearest cache, without waiting for it. A hint: nothing that
/// can be observed depends on it.
#[inline(always)]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = values.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(values)).step_by(LINE) {
            // SAFETY: the instruction is part of every x86-64 processor, reads nothing that the program
            // could see, and does not fault whatever the address is; `wrapping_add` keeps the computation of
            // the address defined.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn a_hint_changes_nothing_for_any_length() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let values: Vec<u32> = (0..len).collect();
            prefetch(&values);
            prefetch::<()>(&[(), ()]);
            assert!(values.iter().copied().eq(0..len));
        }
    }
}
