//! Participation cap: no device sends more often than its average power allows.

/// No device is scheduled more often than ⌊K·t/M⌋ + slack times in the first t rounds, nor more often than
/// ⌊K·T/M⌋ times in all T.
///
/// A scheduled device sends with M·P̄/K, so that being scheduled K·t/M times in t rounds is to spend P̄ on
/// average. After t rounds no device has therefore spent more than P̄·(1 + slack·M/(K·t)) on average, and
/// after the last none more than P̄: the paper's constraint, which scheduling by norm breaks on non-IID data.
/// (A run so short that K·T < M could then send nothing at all; there one transmission each is allowed.)
///
/// The price: where fewer than K devices have transmissions left, fewer than K are scheduled. As long as no
/// device is excluded and slack ≥ 1 there is at least one until the last M/K rounds: if all M had sent
/// ⌊K·t/M⌋ + 1 times before round t, that would exceed the K·(t−1) transmissions so far.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    /// M.
    pub devices: u64,
    /// K.
    pub k: u64,
    /// T.
    pub rounds: u64,
    /// The number of transmissions by which a device may be ahead of its share.
    pub slack: u64,
}

impl Cap {
    /// The number of times that a device may have been scheduled after `t` rounds.
    ///
    /// ```
    /// use fedlink::system::server::Cap;
    /// let cap = Cap { devices: 40, k: 1, rounds: 500, slack: 2 };
    /// assert_eq!([1, 39, 40, 400, 500].map(|t| cap.max_scheduled(t)), [2, 2, 3, 12, 12]);
    /// ```
    pub fn max_scheduled(&self, t: u64) -> u64 {
        let share = |rounds: u64| (u128::from(self.k) * u128::from(rounds) / u128::from(self.devices)) as u64;
        share(t).saturating_add(self.slack).min(share(self.rounds).max(1))
    }
}
