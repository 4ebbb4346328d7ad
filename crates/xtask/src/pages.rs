//! The pages of `docs/` whose code is tested with the rest of the documentation.

#![forbid(unsafe_code)]

/// How to write a policy.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/own-policy.md")]
pub struct OwnPolicy;
