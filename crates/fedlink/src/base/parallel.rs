//! Parallel iterators: rayon's, or, without the feature `threads`, the same names for the iterators of
//! one thread.
//!
//! Every use of them gives the same bits for any number of threads, including one.

pub mod prelude {
    #[cfg(feature = "threads")]
    pub use rayon::prelude::*;

    #[cfg(not(feature = "threads"))]
    pub use super::sequential::Slices;
}

#[cfg(not(feature = "threads"))]
mod sequential {
    use std::slice::{Chunks, ChunksMut, Iter};

    /// The iterators of a slice under the names that rayon gives to its own.
    pub trait Slices<T> {
        fn par_iter(&self) -> Iter<'_, T>;
        fn par_chunks(&self, size: usize) -> Chunks<'_, T>;
        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T>;
    }

    impl<T> Slices<T> for [T] {
        fn par_iter(&self) -> Iter<'_, T> {
            self.iter()
        }

        fn par_chunks(&self, size: usize) -> Chunks<'_, T> {
            self.chunks(size)
        }

        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T> {
            self.chunks_mut(size)
        }
    }
}
