//! Easier goals on the way to a goal, which short runs reach.

use super::goal::{Condition, Level, Quantity, Until};

impl Until {
    /// The goal whose conditions are a share of the way from a model that has learned nothing to this goal:
    /// 0 is chance level (accuracy 1/C, loss ln C, the worst class 0), 1 the goal itself. `target` is
    /// `run.target`. Except at 1, conditions that a model without learning may meet are left out, and one
    /// evaluation is enough: short runs have few.
    ///
    /// ```
    /// use fedlink_study::goals::Goal;
    /// let goal: Goal = "seconds until accuracy >= 0.9 and worst-class >= 0.7".parse().unwrap();
    /// let Goal::Until(until) = goal else { unreachable!() };
    /// assert_eq!(
    ///     Goal::Until(until.eased(0.5, 10, 0.9)).to_string(),
    ///     "seconds until accuracy >= 0.5 and worst-class >= 0.35"
    /// );
    /// ```
    #[must_use]
    pub fn eased(&self, share: f64, classes: usize, target: f64) -> Self {
        if share >= 1.0 {
            return self.clone();
        }
        let classes = classes.max(2) as f64;
        let ease = |condition: &Condition| {
            let level = condition.number(target);
            let start = match condition.quantity {
                Quantity::Accuracy => 1.0 / classes,
                Quantity::Loss => libm::log(classes),
                Quantity::Class(_) => 0.0,
                Quantity::Recorded(recorded) if ["worst-class", "worst-tenth"].contains(&recorded.name) => {
                    0.0
                }
                // How evenly devices are scheduled or served is not learned.
                Quantity::Recorded(_) => level,
            };
            let is_ahead = if condition.quantity.rises() { level > start } else { level < start };
            let level = Level::Number(start + share * (level - start));
            is_ahead.then_some(Condition { level, ..*condition })
        };
        let conditions: Vec<Condition> = self.conditions.iter().filter_map(ease).collect();
        if conditions.is_empty() { self.clone() } else { Self { conditions, evaluations: 1, ..self.clone() } }
    }

    /// The goal with one condition alone.
    #[must_use]
    pub fn only(&self, index: usize) -> Self {
        Self { conditions: self.conditions[index..=index].to_vec(), ..self.clone() }
    }

    /// The same goal counted in another cost.
    #[must_use]
    pub fn counted_in(&self, cost: super::Cost) -> Self {
        Self { cost, ..self.clone() }
    }

    /// The goal with the level of one condition moved by so much.
    #[must_use]
    pub fn relaxed(&self, index: usize, by: f64, target: f64) -> Self {
        let mut goal = self.clone();
        let condition = &mut goal.conditions[index];
        let level = condition.number(target);
        let sign = if condition.quantity.rises() { -1.0 } else { 1.0 };
        condition.level = Level::Number(level + sign * by);
        goal
    }
}

impl Condition {
    /// Whether larger values are better.
    pub fn rises(&self) -> bool {
        self.quantity.rises()
    }

    /// Whether its quantity is a share from 0 to 1.
    pub fn is_share(&self) -> bool {
        self.quantity.is_share()
    }

    /// Its level, `run.target` being `target`.
    pub fn number(&self, target: f64) -> f64 {
        match self.level {
            Level::Number(level) => level,
            Level::Target => target,
        }
    }

    /// The value of its quantity at an evaluation; none if it was not recorded.
    pub fn value(&self, row: &fedlink::record::Row) -> Option<f64> {
        self.quantity.value(row)
    }
}
