//! An answer as text for a terminal.

use super::answer::{Answer, Cost, Priced};
use crate::table::number;
use std::fmt::Write;

/// The most lines of a list.
const FEW: usize = 6;

impl Answer {
    /// The answer in lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |head: &str, body: &str| {
            let _ = writeln!(text, "{head:<13} {body}");
        };
        if let Some(best) = &self.recommended {
            recommended(best, &mut line);
            self.comparisons(&mut line);
            self.about(&mut line);
        } else {
            let goal = self.goals.first().map_or("", String::as_str);
            line("no answer", &format!("nothing reaches {goal}"));
            self.infeasible.iter().for_each(|fact| line("", fact));
        }
        for (i, lost) in self.lost.iter().take(2 * FEW).enumerate() {
            let head = if i == 0 { "lost" } else { "" };
            line(
                head,
                &format!(
                    "{} ({} candidates, the best {}): {}",
                    lost.class, lost.candidates, lost.best, lost.reason
                ),
            );
        }
        for (i, fact) in self.not_covered.iter().enumerate() {
            line(if i == 0 { "not covered" } else { "" }, fact);
        }
        for (i, fact) in self.next.iter().take(FEW).enumerate() {
            line(if i == 0 { "more budget" } else { "" }, fact);
        }
        text
    }

    /// Ties, the Pareto front and the conditions.
    fn comparisons(&self, line: &mut impl FnMut(&str, &str)) {
        for (i, tie) in self.ties.iter().enumerate() {
            let interval = match (tie.ratio, tie.low, tie.high) {
                (Some(ratio), Some(low), Some(high)) => {
                    format!("{ratio:.2} times the cost [{low:.2}, {high:.2}]")
                }
                _ => "no ratio".into(),
            };
            line(
                if i == 0 { "not separable" } else { "" },
                &format!("{}: {interval}, p = {:.2}", tie.label, tie.p),
            );
        }
        if !self.pareto.is_empty() {
            let shown = |label: &String| {
                let priced = self.finalists.iter().find(|priced| priced.label == *label);
                priced.map_or_else(String::new, |priced| format!("{label}: {}", joined(&priced.costs)))
            };
            for (i, label) in self.pareto.iter().enumerate() {
                line(if i == 0 { "Pareto" } else { "" }, &shown(label));
            }
        }
        for (i, fact) in self.conditions.iter().enumerate() {
            let alone = fact.alone.as_ref().map_or_else(String::new, |cost| format!("alone {}", cost.text));
            let binds = if fact.binds { "binds; " } else { "" };
            let relaxed = fact.relaxed.as_ref().map_or_else(String::new, |relaxed| format!("; {relaxed}"));
            let best = fact
                .relaxed_best
                .as_ref()
                .map_or_else(String::new, |best| format!(", where {best} would be the best"));
            line(
                if i == 0 { "conditions" } else { "" },
                &format!("{}: {binds}{alone}{relaxed}{best}", fact.condition),
            );
        }
    }

    /// The worth of settings, sensitivities and devices.
    fn about(&self, line: &mut impl FnMut(&str, &str)) {
        let mut head = "worth";
        let mut key = "";
        let mut values: Vec<String> = Vec::new();
        let mut flush = |key: &str, values: &mut Vec<String>, head: &mut &str| {
            if !values.is_empty() {
                line(head, &format!("{key}: {}", values.join(", ")));
                *head = "";
                values.clear();
            }
        };
        for fact in &self.knobs {
            if fact.key != key {
                flush(key, &mut values, &mut head);
                key = &fact.key;
            }
            let ratio = fact.ratio.map_or_else(|| "–".into(), |ratio| format!("×{ratio:.2}"));
            let share =
                if fact.share < 1.0 { format!(" (at {:.0} %)", 100.0 * fact.share) } else { String::new() };
            values.push(if fact.is_chosen {
                format!("{} chosen", fact.value)
            } else {
                format!("{} {ratio}{share}", fact.value)
            });
        }
        flush(key, &mut values, &mut head);
        for (i, fact) in self.sensitivities.iter().enumerate() {
            let ratio = match (fact.ratio, fact.low, fact.high) {
                (Some(ratio), Some(low), Some(high)) => format!("×{ratio:.2} [{low:.2}, {high:.2}], "),
                (Some(ratio), _, _) => format!("×{ratio:.2}, "),
                _ => String::new(),
            };
            let cost = fact.cost.as_ref().map_or_else(String::new, |cost| cost.text.clone());
            let problem = fact.problem.as_deref().unwrap_or("");
            line(if i == 0 { "sensitive" } else { "" }, &format!("{}: {ratio}{cost}{problem}", fact.change));
        }
        for (i, group) in self.groups.iter().enumerate() {
            let joules =
                group.joules.map_or_else(String::new, |joules| format!(", {} J per device", number(joules)));
            let accuracy =
                group.accuracy.map_or_else(String::new, |share| format!(", accuracy {:.1} %", 100.0 * share));
            let body = format!(
                "{} ({} devices): {:.0} % of the uploads, {:.0} % of the airtime{joules}{accuracy}",
                group.name,
                group.devices,
                100.0 * group.uploads,
                100.0 * group.airtime
            );
            line(if i == 0 { "devices" } else { "" }, &body);
        }
        if !self.classes.is_empty() {
            let classes: Vec<String> =
                self.classes.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
            line("classes", &format!("{} % at the end", classes.join(" ")));
        }
        if let [down, train, report, up] = self.phases_s[..] {
            let deadline = self.deadline_s.map_or_else(String::new, |s| format!("; the deadline is {s} s"));
            line(
                "a round",
                &format!(
                    "down {down:.3} s, training {train:.3} s, reports {report:.3} s, up {up:.3} s{deadline}"
                ),
            );
        }
        if let Some(joules) = self.worst_device_joules {
            let empty = self.first_empty.map_or_else(
                || "no battery was empty".into(),
                |round| format!("the first battery was empty in round {round}"),
            );
            line(
                "batteries",
                &format!("the device that spends the most: {} J until the goal; {empty}", number(joules)),
            );
        }
    }
}

fn recommended(best: &Priced, line: &mut impl FnMut(&str, &str)) {
    line("recommended", &best.label);
    for cost in &best.costs {
        line(&format!("  {}", cost.goal.split(' ').next().unwrap_or("cost")), &cost.text);
    }
    let round = match (best.round_s, best.round_j) {
        (Some(seconds), Some(joules)) => {
            format!("{} s and {} J by the link budget, ", number(seconds), number(joules))
        }
        _ => String::new(),
    };
    line("  a round", &format!("{round}late {:.1} %", 100.0 * best.late));
    let worst =
        best.worst_class.map_or_else(String::new, |share| format!(", worst class {:.1} %", 100.0 * share));
    line("  at the end", &format!("accuracy {:.1} %{worst}", 100.0 * best.accuracy));
}

fn joined(costs: &[Cost]) -> String {
    costs.iter().map(|cost| cost.text.clone()).collect::<Vec<_>>().join("; ")
}
