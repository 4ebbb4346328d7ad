//! The guarantees of a scheme for its output, besides the bits.

/// The properties of v̂ at a level, for every update v of d numbers. Expectations are over the random numbers
/// of the scheme; a scheme without any has the properties always. All hold up to the rounding of `f32`.
///
/// The level is taken as given. Where it follows from the draw (a scheme whose length depends on the data), a
/// budget that cuts off unlucky draws leaves a bias that this does not describe; the scheme's file says so.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// E\[v̂\] = v.
    pub unbiased: bool,
    /// ω: E‖v̂ − v‖² ≤ ω·‖v‖². None: there is no such bound, or none that is known.
    pub omega: Option<f64>,
    /// δ in (0, 1]: E‖v − v̂‖² ≤ (1 − δ)·‖v‖², which error feedback needs. None: there is none.
    pub delta: Option<f64>,
    /// ⟨v, v̂⟩ = ‖v̂‖², so that ‖v̂‖² = ‖v‖² − ‖v − v̂‖².
    pub projection: bool,
    /// v̂ of a·v is a·v̂ for a > 0.
    pub homogeneous: bool,
}

impl Properties {
    /// No known property, as of a custom scheme.
    pub const UNKNOWN: Self =
        Self { unbiased: false, omega: None, delta: None, projection: false, homogeneous: false };

    /// The properties in words; ω and δ hold for the d and the level of the example.
    pub(super) fn in_words(&self) -> String {
        let (dim, level) = super::EXAMPLE;
        let mut words = vec![if self.unbiased { "unbiased" } else { "biased" }.to_owned()];
        words.extend(self.projection.then(|| "projection".to_owned()));
        let bounds = [("ω ≤", self.omega), ("δ ≥", self.delta)];
        let bounds: Vec<String> = bounds
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", three_digits(value?))))
            .collect();
        if !bounds.is_empty() {
            words.push(format!("{} at d = {dim}, level {level}", bounds.join(", ")));
        }
        words.join("; ")
    }

    /// A projection that keeps at least a share δ of ‖v‖² on average.
    pub fn projection(delta: f64) -> Self {
        let (omega, delta) = (Some(1.0 - delta), Some(delta));
        Self { unbiased: false, omega, delta, projection: true, homogeneous: true }
    }

    /// An unbiased scheme with E‖v̂ − v‖² ≤ ω·‖v‖², if there is such an ω. It contracts only if ω < 1.
    pub fn unbiased(omega: Option<f64>) -> Self {
        let delta = omega.map(|omega| 1.0 - omega).filter(|delta| *delta > 0.0);
        Self { unbiased: true, omega, delta, projection: false, homogeneous: true }
    }
}

/// A number in three digits.
fn three_digits(number: f64) -> String {
    format!("{number:.2e}").parse::<f64>().map_or_else(|_| number.to_string(), |short| short.to_string())
}
