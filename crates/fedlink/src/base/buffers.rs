//! Memory that workers borrow and give back.

use std::sync::{Mutex, PoisonError};

/// Spare values of one type. The pool grows to the number that were ever in use at once, and then
/// allocates nothing.
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Takes a spare value, or makes one.
    pub(crate) fn take(&self, make: impl FnOnce() -> T) -> T {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(make)
    }

    /// Gives a value back for reuse.
    pub(crate) fn give(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }

    /// Lends a spare value to `work`.
    pub(crate) fn with<R>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.take(make);
        let result = work(&mut value);
        self.give(value);
        result
    }
}
