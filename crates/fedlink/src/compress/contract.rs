//! The contract of a compressor, for tests of compressors, built-in or custom.

use super::{Compressor, Context, Encoded, Properties, Scratch, Spent};
use crate::base::rng::{Purpose, stream};
use crate::base::units::{Bits, DeviceId};

/// Checks that a compressor keeps the invariants of [`Compressor`] and does what it declares
/// ([`Compressor::properties`]); each finding names the invariant or the property.
///
/// A property that this finds no contradiction to may still be wrong: it encodes a few thousand updates.
///
/// ```
/// use fedlink::compress::{Sign, contract};
/// assert_eq!(contract::findings(&Sign::default()), [""; 0]);
/// ```
pub fn findings(scheme: &dyn Compressor) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |result: Result<(), String>| {
        if let Err(problem) = result {
            let fact = |text: &str| text.split(':').next().map(str::to_owned);
            if found.iter().all(|other| fact(other) != fact(&problem)) {
                found.push(problem);
            }
        }
        !found.is_empty()
    };
    for update in updates() {
        for budget in [0.0, 1.0, 31.5, 33.0, 64.0, 100.0, 333.3, 1e3, 1e5, f64::INFINITY] {
            add(check_encoding(scheme, &update, Bits(budget)));
        }
    }
    // Properties of wrong encodings would be findings without end.
    if !add(Ok(())) {
        add(check_properties(scheme));
    }
    found
}

/// Updates of many sizes and kinds, from a fixed seed each.
fn updates() -> Vec<Vec<f32>> {
    let mut all = small_updates();
    all.extend([vec![], vec![0.0; 9], vec![2.5], vec![1e30, -1e-30, 0.0, 1.0]]);
    let mut rng = stream(9, Purpose::Test, 0, 0);
    all.push((0..500).map(|_| rng.normal() as f32).collect());
    all
}

/// The result of a scheme for an update, with memory that has been used before.
pub(super) fn encode(scheme: &dyn Compressor, update: &[f32], budget: Bits) -> (Spent, Encoded) {
    let (mut scratch, mut out) = (Scratch::default(), Encoded::Dense(vec![7.0; 3]));
    let mut spent = Spent::default();
    for update in [&[3.0, -9.0, 0.25, 8.0, 1.0, 1.0, 2.0, -2.0], update] {
        let context = Context::new(update.len(), budget);
        spent = scheme.encode(update, &context, &mut stream(4, Purpose::Test, 1, 2), &mut scratch, &mut out);
    }
    (spent, out)
}

/// Checks that an encoding meets its budget, is silent at level 0 alone, is an update, and depends on the
/// arguments alone.
pub(super) fn check_encoding(scheme: &dyn Compressor, update: &[f32], budget: Bits) -> Result<(), String> {
    let (spent, out) = encode(scheme, update, budget);
    let failed = |found: Option<String>| found.map_or(Ok(()), |problem| Err(format!("encode: {problem}")));
    failed(scheme.failure())?;
    let case = format!("{} entries within {} bits", update.len(), budget.0);
    let Spent { bits, level } = spent;
    if !(bits.0 >= 0.0 && bits.0.is_finite()) {
        return Err(format!("bits: it spends {} bits ({case}); it must be a finite number", bits.0));
    }
    // A budget that is no number allows nothing.
    if bits.0 != 0.0 && (budget.0.is_nan() || bits.0 > budget.0) {
        return Err(format!("budget: it spends {} bits ({case})", bits.0));
    }
    let silent = matches!(out, Encoded::Silent);
    if silent != (level == 0) || silent != (bits.0 == 0.0) {
        let sends = if silent { "nothing" } else { "an update" };
        let problem = format!("it sends {sends} at level {level} for {} bits ({case})", bits.0);
        return Err(format!("silence: {problem}; nothing has level 0 and 0 bits, and an update has neither"));
    }
    out.check(update.len()).map_err(|problem| format!("update: {problem} ({case})"))?;
    let mut fresh = Encoded::default();
    let mut rng = stream(4, Purpose::Test, 1, 2);
    let context = Context::new(update.len(), budget);
    let again = scheme.encode(update, &context, &mut rng, &mut Scratch::default(), &mut fresh);
    if (again, &fresh) != (spent, &out) {
        return Err(format!("determinism: the same update gives two results ({case})"));
    }
    Ok(())
}

/// The result of a scheme for an update in draw `i`, and its level.
fn draw(scheme: &dyn Compressor, update: &[f32], budget: Bits, i: u64) -> (usize, Vec<f64>) {
    let context = Context::new(update.len(), budget).of(7, (i, DeviceId(3)));
    let (mut rng, mut out) = (stream(7, Purpose::Test, i, 3), Encoded::default());
    let spent = scheme.encode(update, &context, &mut rng, &mut Scratch::default(), &mut out);
    let mut sent = vec![0.0; update.len()];
    out.for_each(|i, value| sent[i as usize] = f64::from(value));
    (spent.level, sent)
}

/// Small updates of all sorts, from a fixed seed each.
pub(super) fn small_updates() -> Vec<Vec<f32>> {
    let mut all = vec![
        vec![1.0, -1.0, 1.0, 1.0],
        vec![5.0, 1e-3, -1e-3, 2e-3, 1e-3, 1e-3],
        vec![0.6, -0.3, 0.1, 0.0],
        vec![-4.0, -3.0, 2.0, 1.0, 1.0, 0.0, 0.0],
    ];
    for seed in 0..4 {
        let mut rng = stream(seed, Purpose::Test, 0, 0);
        let dim = 3 + 2 * seed;
        all.push((0..dim).map(|_| rng.normal() as f32).collect());
        all.push((0..dim).map(|_| (2.0 * rng.normal()).exp() as f32).collect());
    }
    all
}

/// The mean of `numbers` and four times its standard error.
fn mean(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = numbers.clone().count() as f64;
    let mean = numbers.clone().sum::<f64>() / count;
    let variance = numbers.map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, 4.0 * (variance / count).sqrt())
}

/// Sums over the draws of a scheme.
#[derive(Default)]
pub(super) struct Drawn {
    /// The cases in which all draws had one level.
    pub cases: usize,
    /// Whether the mean of some entry was off.
    pub is_biased: bool,
}

/// Checks the declared properties of a scheme within four standard errors.
pub(super) fn drawn(scheme: &dyn Compressor) -> Result<Drawn, String> {
    let mut found = Drawn::default();
    // Without random numbers one draw covers all.
    let many = |i| draw(scheme, &[-4.0, -3.0, 2.0, 1.0, 1.0, 0.5, 0.25], Bits(70.0), i);
    let is_random = (1..20).any(|i| many(i) != many(0));
    for update in small_updates() {
        for budget in [40.0, 48.0, 70.0, 104.0, 150.0, 300.0, 1e4] {
            let draws = if is_random { 1500 } else { 1 };
            let all: Vec<(usize, Vec<f64>)> =
                (0..draws).map(|i| draw(scheme, &update, Bits(budget), i)).collect();
            check_draws(scheme, &update, &all, is_random, &mut found)?;
        }
    }
    Ok(found)
}

/// Checks the declared properties of a scheme.
fn check_properties(scheme: &dyn Compressor) -> Result<(), String> {
    drawn(scheme).map(|_| ())
}

/// Checks the draws of one update within one budget.
fn check_draws(
    scheme: &dyn Compressor,
    update: &[f32],
    all: &[(usize, Vec<f64>)],
    is_random: bool,
    found: &mut Drawn,
) -> Result<(), String> {
    let highest = all.iter().map(|(level, _)| *level).max().unwrap_or(0);
    if highest == 0 {
        return Ok(());
    }
    let square = update.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    // The mean within a budget: over all draws, whatever their levels.
    for (i, &truth) in update.iter().enumerate() {
        let (mean, unsure) = mean(all.iter().map(|(_, sent)| sent[i]));
        let seen = all.iter().filter(|(_, sent)| sent[i] != 0.0).count();
        if is_random && seen < 20 {
            // Too rare for a standard deviation.
            continue;
        }
        let off = (mean - f64::from(truth)).abs() > unsure + 1e-5 * square.sqrt();
        if off && scheme.properties(update.len(), highest.max(1)).unbiased {
            return Err(format!("unbiased: of {update:?}, entry {i} has the mean {mean} ± {unsure}"));
        }
        found.is_biased |= off;
    }
    let level = all[0].0;
    if all.iter().any(|(other, _)| *other != level) {
        return Ok(());
    }
    found.cases += 1;
    let Properties { omega, delta, projection, .. } = scheme.properties(update.len(), level);
    let case = format!("{update:?} at level {level}");
    let error =
        |sent: &[f64]| -> f64 { sent.iter().zip(update).map(|(a, b)| (a - f64::from(*b)).powi(2)).sum() };
    let (loss, unsure) = mean(all.iter().map(|(_, sent)| error(sent)));
    let limit = unsure + 1e-5 * square;
    if let Some(omega) = omega.filter(|omega| !(*omega >= 0.0 && loss <= omega * square + limit)) {
        return Err(format!("omega: it declares ω = {omega}, but ‖v̂ − v‖² is {loss} of {square} for {case}"));
    }
    let holds = |delta: f64| delta > 0.0 && delta <= 1.0 && loss <= (1.0 - delta) * square + limit;
    if let Some(delta) = delta.filter(|delta| !holds(*delta)) {
        return Err(format!("delta: it declares δ = {delta}, but ‖v̂ − v‖² is {loss} of {square} for {case}"));
    }
    for (_, sent) in all.iter().filter(|_| projection) {
        let along: f64 = sent.iter().zip(update).map(|(a, b)| a * f64::from(*b)).sum();
        let own: f64 = sent.iter().map(|a| a * a).sum();
        if (along - own).abs() > 1e-5 * square {
            return Err(format!("projection: ⟨v, v̂⟩ is {along}, but ‖v̂‖² is {own} for {case}"));
        }
    }
    Ok(())
}
