//! The page of a plan. Every table and chart is in the page as it is written, so that it needs no script.

use super::charts::{accuracy_chart, map_chart, pareto_chart, worst_class_chart, worth_chart};
use crate::figure::Figure;
use crate::report::page_parts::{STYLE, escape};
use fedlink_study::plan::{Answer, Cost};
use fedlink_study::table::number;
use std::fmt::Write;

/// The most candidates in the table of the page; the files have all.
const SHOWN: usize = 200;

/// The page of an answer; `best` is the text of `best.toml`.
pub fn html(answer: &Answer, best: Option<&str>) -> String {
    let sections: Vec<(&str, &str, String)> = vec![
        ("answer", "Answer", headline(answer)),
        ("finalists", "Finalists", finalists(answer)),
        ("goals", "Goals and constraints", goals(answer)),
        ("settings", "What each setting is worth", settings(answer)),
        ("devices", "Devices and classes", devices(answer)),
        ("round", "The round and the batteries", round(answer)),
        ("accuracy", "Accuracy by cost", accuracy(answer)),
        ("sensitive", "If an assumption is off", sensitivities(answer)),
        ("lost", "Why others lost", lost(answer)),
        ("candidates", "All candidates", candidates(answer)),
        ("covered", "What was assumed and not searched", covered(answer)),
        ("file", "The recommended file", file(answer, best)),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|(_, _, body)| !body.is_empty()).collect();
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";
    page += "<meta name=\"color-scheme\" content=\"light dark\"/>\n";
    let allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    let _ = writeln!(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"{allowed}\"/>");
    page += "<link rel=\"icon\" href=\"data:,\"/>\n";
    let title = escape(&format!("Plan of {}", answer.scenario));
    let _ = write!(page, "<title>{title}</title>\n<style>\n{STYLE}\n{OWN_STYLE}</style>\n</head>\n<body>\n");
    page += "<a class=\"skip\" href=\"#main\">Skip to the answer</a>\n<header>\n";
    let facts = format!(
        "{:.0} settings · {} judged by the link budget · {:.0} full runs · {:.0} s",
        answer.points, answer.screened, answer.spent_runs, answer.seconds
    );
    let _ = write!(page, "<h1>{title}</h1>\n<p>{}</p>\n<nav aria-label=\"Sections\"><ul>", escape(&facts));
    for (id, name, _) in &sections {
        let _ = write!(page, "<li><a href=\"#{id}\">{name}</a></li>");
    }
    page += "</ul></nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n";
    for (id, name, body) in &sections {
        let _ = write!(
            page,
            "<section id=\"{id}\" aria-labelledby=\"{id}-heading\">\n<h2 id=\"{id}-heading\">{name}</h2>\n\
             {body}</section>\n"
        );
    }
    let _ = write!(
        page,
        "</main>\n<footer><p>fedlink {}</p></footer>\n</body>\n</html>\n",
        escape(&answer.version)
    );
    page
}

const OWN_STYLE: &str = "\
.plan-chart { max-width: 52rem; background: #fff; border-radius: 6px; }
.plan-chart svg { display: block; width: 100%; height: auto; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
.scroll { overflow-x: auto; }
.big { font-size: 1.25rem; }
td.text { text-align: left; white-space: normal; min-width: 16rem; }
pre { overflow-x: auto; padding: .75rem; background: var(--panel); border-radius: 8px; font-size: .85rem; }
";

fn chart(figure: &impl Figure) -> String {
    // The document without its prologue.
    let svg = figure.svg();
    let from = svg.find("<svg").unwrap_or(0);
    format!("<div class=\"plan-chart\">{}</div>\n", &svg[from..])
}

/// A table; cells hold text, and the first of a row is its name.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from("<div class=\"scroll\"><table><thead><tr>");
    for name in head {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escape(name));
    }
    text += "</tr></thead><tbody>\n";
    for row in rows {
        text += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let is_long = cell.chars().count() > 24;
            let _ = match i {
                0 => write!(text, "<th scope=\"row\">{}</th>", escape(cell)),
                _ if is_long => write!(text, "<td class=\"text\">{}</td>", escape(cell)),
                _ => write!(text, "<td>{}</td>", escape(cell)),
            };
        }
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut text = String::from("<ul>");
    for item in items {
        let _ = write!(text, "<li>{}</li>", escape(item));
    }
    text + "</ul>\n"
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn headline(answer: &Answer) -> String {
    let Some(best) = &answer.recommended else {
        let goal = answer.goals.first().map_or("", String::as_str);
        return format!("<p class=\"big\">Nothing that was run reaches <em>{}</em>.</p>\n", escape(goal))
            + &list(&answer.infeasible);
    };
    let costs: Vec<String> = best.costs.iter().map(|cost| cost.text.clone()).collect();
    let mut text = format!(
        "<p class=\"big\">Deploy <strong>{}</strong>: {}.</p>\n<dl class=\"tiles\">",
        escape(&best.label),
        escape(&costs.join("; "))
    );
    let mut tile = |name: &str, value: String, more: &str| {
        let _ = write!(
            text,
            "<div class=\"tile\"><dt>{}</dt><dd>{}</dd><dd>{}</dd></div>",
            escape(name),
            escape(&value),
            escape(more)
        );
    };
    for cost in &best.costs {
        let value = cost
            .median
            .value
            .map_or_else(|| "not known".into(), |value| format!("{} {}", number(value), cost.unit));
        let interval = cost.median.interval(number);
        let name = cost.goal.split(' ').next().unwrap_or("cost");
        tile(name, value, &format!("{interval}, reached {}/{}", cost.median.reached, cost.median.of));
    }
    tile(
        "Accuracy at the end",
        percent(best.accuracy),
        &best.worst_class.map_or_else(String::new, |share| format!("worst class {}", percent(share))),
    );
    if let Some(seconds) = best.round_s {
        tile(
            "A round",
            format!("{} s", number(seconds)),
            &format!("{} of the devices late", percent(best.late)),
        );
    }
    text += "</dl>\n";
    let sure = match answer.ties.len() {
        0 => "The fresh seeds tell it from all other finalists.".to_owned(),
        count => format!(
            "{count} other finalists cannot be told from it with these seeds: {}.",
            answer.ties.iter().map(|tie| tie.label.as_str()).collect::<Vec<_>>().join("; ")
        ),
    };
    let error = percent(answer.error_rate);
    let _ = writeln!(
        text,
        "<p>{} A test drops the best candidate of the race with a probability of at most {error}. \
         Medians are over fresh seeds, which chose nothing; runs that did not reach the goal count as \
         larger.</p>",
        escape(&sure)
    );
    text
}

fn cost_cells(costs: &[Cost]) -> Vec<String> {
    costs.iter().map(|cost| cost.text.clone()).collect()
}

fn finalists(answer: &Answer) -> String {
    let mut head = vec!["Settings"];
    head.extend(answer.goals.iter().map(|goal| goal.split(' ').next().unwrap_or("cost")));
    head.extend(["Accuracy", "Worst class", "Late"]);
    let rows: Vec<Vec<String>> = answer
        .finalists
        .iter()
        .map(|priced| {
            let mut row = vec![priced.label.clone()];
            row.extend(cost_cells(&priced.costs));
            row.push(percent(priced.accuracy));
            row.push(priced.worst_class.map_or_else(|| "–".into(), percent));
            row.push(percent(priced.late));
            row
        })
        .collect();
    let ties: Vec<Vec<String>> = answer
        .ties
        .iter()
        .map(|tie| {
            let interval = match (tie.low, tie.high) {
                (Some(low), Some(high)) => format!("[{low:.2}, {high:.2}]"),
                _ => "–".into(),
            };
            let ratio = tie.ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}"));
            let seeds = tie.seeds_needed.map_or_else(|| "–".into(), |seeds| seeds.to_string());
            vec![tie.label.clone(), ratio, interval, format!("{:.3}", tie.p), seeds]
        })
        .collect();
    let mut text = table(&head, &rows);
    if !ties.is_empty() {
        text += "<h3>Not separable from the recommended one</h3>\n";
        text += &table(&["Settings", "Cost, relative", "95 % interval", "p", "Seeds that would tell"], &ties);
    }
    if let Some(pareto) = pareto_chart(answer) {
        text += "<h3>Pareto front</h3>\n";
        text += &chart(&pareto);
    }
    text
}

fn goals(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = answer
        .conditions
        .iter()
        .map(|fact| {
            let text =
                |cost: &Option<Cost>| cost.as_ref().map_or_else(|| "–".into(), |cost| cost.text.clone());
            vec![
                fact.condition.clone(),
                if fact.binds { "binds".into() } else { "has room".into() },
                text(&fact.alone),
                fact.relaxed.clone().unwrap_or_default(),
                fact.relaxed_best.clone().unwrap_or_else(|| "the same".into()),
                text(&fact.relaxed_cost),
            ]
        })
        .collect();
    let mut lines = answer.goals.clone();
    lines.extend(answer.constraints.iter().map(|limit| format!("subject to {limit}")));
    list(&lines)
        + &table(&["Condition", "", "Cost until it alone", "If it is relaxed", "Best then", "At"], &rows)
}

fn settings(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(map) = map_chart(answer) {
        text += &chart(&map);
    }
    let charts: String = worth_chart(answer).iter().map(|(_, bars)| chart(bars)).collect();
    if !charts.is_empty() {
        let _ = writeln!(text, "<div class=\"two\">{charts}</div>");
    }
    let rows: Vec<Vec<String>> = answer
        .knobs
        .iter()
        .map(|fact| {
            let ratio = match fact.ratio {
                _ if fact.is_chosen => "chosen".into(),
                Some(ratio) => format!("{ratio:.2}"),
                None => "–".into(),
            };
            let share = if fact.share < 1.0 {
                format!("{:.0} % of the way", 100.0 * fact.share)
            } else {
                "the goal".into()
            };
            vec![
                format!("{} = {}", fact.key, fact.value),
                ratio,
                fact.seeds.to_string(),
                share,
                fact.best.clone(),
            ]
        })
        .collect();
    text + &table(&["Setting", "Cost, relative", "Seeds", "Compared by", "Best candidate with it"], &rows)
}

fn devices(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = answer
        .groups
        .iter()
        .map(|group| {
            vec![
                group.name.clone(),
                group.devices.to_string(),
                percent(group.uploads),
                percent(group.airtime),
                group.joules.map_or_else(|| "–".into(), |joules| format!("{} J", number(joules))),
                group.accuracy.map_or_else(|| "–".into(), percent),
            ]
        })
        .collect();
    let head = ["Group", "Devices", "Uploads", "Airtime", "Joules of a device", "Accuracy of its devices"];
    let mut text = table(&head, &rows);
    if !answer.classes.is_empty() {
        let bars: Vec<(String, f64)> = answer
            .classes
            .iter()
            .enumerate()
            .map(|(class, share)| (class.to_string(), 100.0 * share))
            .collect();
        text += &chart(&crate::chart::Bars::whole("", "class", "accuracy at the end (%)", &bars, None));
    }
    if let Some(worst) = worst_class_chart(answer) {
        text += "<h3>The worst class</h3>\n";
        text += &chart(&worst);
    }
    text
}

fn round(answer: &Answer) -> String {
    let mut lines = Vec::new();
    let mut text = String::new();
    if let [down, train, report, up] = answer.phases_s[..] {
        let names = ["downlink", "training", "reports", "uplink"];
        let bars: Vec<(String, f64)> =
            names.iter().map(|name| (*name).to_owned()).zip([down, train, report, up]).collect();
        let deadline = answer.deadline_s.map(|s| ("deadline".to_owned(), s));
        text += &chart(&crate::chart::Bars::whole("", "phase", "seconds", &bars, deadline));
        lines.push(format!("a mean round takes {} s", number(down + train + report + up)));
        lines.extend(answer.deadline_s.map(|s| format!("the deadline is {s} s")));
    }
    if let Some(joules) = answer.worst_device_joules {
        lines.push(format!("the device that spends the most needs {} J until the goal", number(joules)));
        lines.push(match answer.first_empty {
            Some(round) => format!("the first battery was empty in round {round}"),
            None => "no battery was empty".into(),
        });
    }
    text + &list(&lines)
}

fn accuracy(answer: &Answer) -> String {
    if answer.curves.is_empty() { String::new() } else { chart(&accuracy_chart(answer)) }
}

fn sensitivities(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = answer
        .sensitivities
        .iter()
        .map(|fact| {
            let interval = match (fact.low, fact.high) {
                (Some(low), Some(high)) => format!("[{low:.2}, {high:.2}]"),
                _ => "–".into(),
            };
            let cost = fact.cost.as_ref().map(|cost| cost.text.clone());
            vec![
                fact.change.clone(),
                fact.ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")),
                interval,
                cost.or_else(|| fact.problem.clone()).unwrap_or_default(),
                percent(fact.late),
            ]
        })
        .collect();
    table(&["Change", "Cost, relative", "95 % interval", "Cost then", "Late"], &rows)
}

fn lost(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = answer
        .lost
        .iter()
        .map(|lost| {
            vec![lost.class.clone(), lost.candidates.to_string(), lost.best.clone(), lost.reason.clone()]
        })
        .collect();
    let ruled: Vec<String> =
        answer.ruled_out.iter().map(|(kind, count)| format!("{count} settings: {kind}")).collect();
    let mut text = table(&["Class", "Candidates", "The best of them", "Why"], &rows);
    if !ruled.is_empty() {
        text += "<h3>Ruled out by the link budget</h3>\n";
        text += &list(&ruled);
    }
    text
}

fn candidates(answer: &Answer) -> String {
    let mut head = vec!["Settings", "Left in", "Why", "Seeds", "Rounds"];
    head.extend(answer.goals.iter().map(|goal| goal.split(' ').next().unwrap_or("cost")));
    head.extend(["Best accuracy", "Worst class"]);
    let mut sorted: Vec<_> = answer.candidates.iter().collect();
    let cost = |row: &fedlink_study::plan::CandidateRow| {
        let median = row.costs.first().and_then(Option::as_ref).map(|cost| cost.median.clone());
        let value = median.as_ref().and_then(|median| median.value).unwrap_or(f64::INFINITY);
        (std::cmp::Reverse(row.seeds), value)
    };
    sorted.sort_by(|a, b| cost(a).0.cmp(&cost(b).0).then(cost(a).1.total_cmp(&cost(b).1)));
    let rows: Vec<Vec<String>> = sorted
        .iter()
        .take(SHOWN)
        .map(|row| {
            let mut cells = vec![
                row.label.clone(),
                row.stage.clone(),
                row.reason.clone(),
                row.seeds.to_string(),
                row.rounds.to_string(),
            ];
            for goal in 0..answer.goals.len() {
                let cost = row.costs.get(goal).and_then(Option::as_ref);
                cells.push(cost.map_or_else(|| "–".into(), |cost| cost.text.clone()));
            }
            cells.push(row.accuracy.map_or_else(|| "–".into(), percent));
            cells.push(row.worst_class.map_or_else(|| "–".into(), percent));
            cells
        })
        .collect();
    let more = answer.candidates.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("<p>{more} more are in candidates.csv.</p>\n") } else { String::new() };
    format!(
        "<p>Costs of the race are medians over its seeds, which chose; those of the finalists are \
         above.</p>\n{}{more}",
        table(&head, &rows)
    )
}

fn covered(answer: &Answer) -> String {
    let stages: Vec<Vec<String>> =
        answer.stages.iter().map(|stage| vec![stage.stage.clone(), stage.text.clone()]).collect();
    let mut lines = answer.not_covered.clone();
    lines.extend(answer.seeds.iter().map(|(name, seeds)| format!("seeds of {name}: {seeds}")));
    let mut text = list(&lines) + &table(&["Stage", "With"], &stages);
    if !answer.next.is_empty() {
        text += "<h3>What more budget would decide</h3>\n";
        text += &list(&answer.next);
    }
    text
}

fn file(answer: &Answer, best: Option<&str>) -> String {
    let Some(best) = best else { return String::new() };
    let settings = answer.recommended.as_ref().map(|priced| {
        priced.settings.iter().map(|(key, value)| vec![key.clone(), value.to_string()]).collect::<Vec<_>>()
    });
    format!(
        "{}<p>Run it by <code>fedlink run best.toml</code>.</p>\n\
         <details><summary>best.toml</summary><pre>{}</pre></details>\n",
        table(&["Key", "Value"], &settings.unwrap_or_default()),
        escape(best)
    )
}
