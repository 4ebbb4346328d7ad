//! How a budget is divided among the rungs of a race.

/// The budget of a race, in runs of the full length.
pub trait Purse {
    /// The rest after `spent`. It is called once before every division of the budget.
    fn left(&mut self, spent: f64) -> f64;
}

/// A budget in runs. The same budget gives the same decisions on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Runs(pub f64);

impl Purse for Runs {
    fn left(&mut self, spent: f64) -> f64 {
        self.0 - spent
    }
}

/// A rung: the rounds and seeds of every candidate that enters it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Rounds of a run.
    pub rounds: u64,
    /// Paired seeds.
    pub seeds: u64,
    /// The most step lengths that are tried per candidate.
    pub steps: usize,
}

/// The rungs of a race, from short runs on few seeds to full runs on many.
#[derive(Clone, Debug, PartialEq)]
pub struct Rungs {
    /// The rungs in their order.
    pub list: Vec<Rung>,
    /// The rounds of a full run.
    pub full: u64,
}

/// The share of the rest of the budget that is kept for the fresh seeds of the finalists.
const CONFIRM: f64 = 0.3;
/// The share of the race that the rungs with full runs take.
const FINALS: f64 = 0.5;
/// The most and the fewest candidates in the first rung with full runs.
const FINALISTS: [usize; 2] = [6, 2];
/// The least share of the race that each rung with shorter runs takes.
const EARLY: f64 = 0.15;
/// A budget below this many full runs is small.
const SMALL: f64 = 120.0;
/// The rungs with full runs.
const FULL: usize = 2;

impl Rungs {
    /// Eighths, quarters, halves and full runs, on 1, 2, 4, 8 and 16 seeds; on fewer where the budget,
    /// `total` full runs, is small. Rounds are multiples of `every`,
    /// at which a model is evaluated, with at least `least` evaluations. Where `short` runs are not the
    /// beginnings of longer ones, all rungs have full runs.
    pub fn new(full: u64, (every, least): (u64, u64), short: bool, steps: bool, total: f64) -> Self {
        let seeds = match total {
            total if total < 0.3 * SMALL => [1, 1, 2, 3, 5],
            total if total < SMALL => [1, 2, 3, 6, 10],
            _ => [1, 2, 4, 8, 16],
        };
        let mut list: Vec<Rung> = Vec::new();
        for ((part, tried), seeds) in [(8u64, 3usize), (4, 4), (2, 3), (1, 1), (1, 1)].into_iter().zip(seeds)
        {
            let rounds = if short { full.div_ceil(part).next_multiple_of(every.max(1)) } else { full };
            let rounds = rounds.max(every.saturating_mul(least)).min(full);
            list.push(Rung { rounds, seeds, steps: if steps { tried } else { 1 } });
        }
        Self { list, full }
    }

    /// The cost of a candidate that enters a rung, in full runs and per scenario: of the last rung the seeds
    /// that it adds.
    pub fn price(&self, rung: usize, scenarios: usize) -> f64 {
        let Rung { rounds, seeds, steps } = self.list[rung];
        let before = if rung + 1 == self.list.len() { self.list[rung - 1].seeds } else { 0 };
        let tuning = if steps > 1 { steps as f64 } else { 0.0 };
        (tuning + (seeds - before) as f64) * scenarios as f64 * rounds as f64 / self.full as f64
    }

    /// The candidates that may enter a rung with so much budget left. The confirmation and the full runs of
    /// the finalists, of which the last rung keeps half, come first; the rungs before share the rest evenly,
    /// and each has its least share.
    pub fn width(&self, rung: usize, left: f64, scenarios: usize) -> usize {
        let first_full = self.list.len() - FULL;
        let racing = (1.0 - CONFIRM) * left;
        let [most, fewest] = FINALISTS;
        let (first, second) = (self.price(first_full, scenarios), self.price(first_full + 1, scenarios));
        if rung > first_full {
            return ((racing / second) as usize).clamp(fewest, most / 2);
        }
        let each = first + 0.5 * second;
        let share = if rung == first_full { 1.0 } else { FINALS };
        let finalists = ((share * racing / each) as usize).clamp(fewest, most);
        if rung == first_full {
            return finalists;
        }
        let rest = (racing - finalists as f64 * each) / (first_full - rung) as f64;
        let rest = rest.max(EARLY * racing);
        ((rest / self.price(rung, scenarios)) as usize).max(finalists)
    }
}
