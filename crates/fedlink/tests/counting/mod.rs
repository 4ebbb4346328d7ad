//! An allocator that counts, for tests of the memory of an operation.
//!
//! It counts for the whole process: a test program that uses it has one test.
#![allow(dead_code, reason = "a test program reads one of the counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with counts of the held bytes, of their peak, and of all allocated bytes.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract. Growing goes
// through the default `realloc`, which calls `alloc`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        ASKED.fetch_add(layout.size(), Relaxed);
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The peak of the memory that `work` held beyond the memory held before it.
pub fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    (PEAK.load(Relaxed) - before, result)
}

/// The bytes that `work` allocated, in all and in the largest allocation.
pub fn asked<T>(work: impl FnOnce() -> T) -> ([usize; 2], T) {
    let before = ASKED.load(Relaxed);
    LARGEST.store(0, Relaxed);
    let result = work();
    ([ASKED.load(Relaxed) - before, LARGEST.load(Relaxed)], result)
}
