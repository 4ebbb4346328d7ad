//! Traces as text: long, one number per line under a header; or wide, one round per line.

use super::{MAX_VALUES, Times, Trace, TraceKind};
use crate::base::rows::{Rows, is_header, shortened};
use csv::StringRecord;

/// The headers that a long file may have.
const HEADERS: &str = "round,device,gain (time_s for round, snr_db or rate_bps for gain, and ,rb at the \
                       end, if there are resource blocks)";

/// Parses a long or a wide file.
pub fn parse(file: &[u8]) -> Result<Trace, String> {
    let text = std::str::from_utf8(file).map_err(|error| {
        let line = file[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        format!("line {line}: is not UTF-8 text; save the trace as CSV, NPY or NPZ")
    })?;
    let mut rows = Rows::new(text);
    let Some((_, first)) = rows.next().filter(|(_, row)| is_header(row)) else { return wide(text) };
    let Some(header) = Header::read(first) else {
        let shown = shortened(text.lines().next().unwrap_or_default());
        return Err(format!("line 1: the header is \"{shown}\", but must be {HEADERS}"));
    };
    long(rows, header)
}

/// The columns of a long file.
#[derive(Clone, Copy)]
struct Header {
    has_times: bool,
    kind: TraceKind,
    has_blocks: bool,
}

impl Header {
    fn read(row: &StringRecord) -> Option<Self> {
        let mut fields = row.iter();
        let has_times = match fields.next()? {
            "round" => false,
            "time_s" => true,
            _ => return None,
        };
        if fields.next()? != "device" {
            return None;
        }
        let name = fields.next()?;
        let kind = TraceKind::ALL.into_iter().find(|kind| kind.name() == name)?;
        let has_blocks = match fields.next() {
            None => false,
            Some("rb") => true,
            Some(_) => return None,
        };
        fields.next().is_none().then_some(Self { has_times, kind, has_blocks })
    }

    /// The name of the first column and its value, for messages.
    fn when(self, at: f64) -> String {
        if self.has_times { format!("time_s {at}") } else { format!("round {at}") }
    }

    fn row(self, line: u64, row: &StringRecord) -> Result<Row, String> {
        let mut fields = row.iter();
        let mut next = |name: &str| {
            let field = fields.next().filter(|field| !field.is_empty());
            field.ok_or_else(|| format!("line {line}: has no {name}"))
        };
        let (first, device, value) = (
            next(if self.has_times { "time_s" } else { "round" })?,
            next("device")?,
            next(self.kind.name())?,
        );
        let block = if self.has_blocks { whole(line, "rb", next("rb")?)? } else { 0 };
        if fields.next().is_some() {
            return Err(format!("line {line}: has more fields than the header"));
        }
        let at = if self.has_times {
            let time = first.parse().ok().filter(|time: &f64| time.is_finite());
            time.ok_or_else(|| {
                format!("line {line}: time_s is {}, but must be a finite number", shortened(first))
            })?
        } else {
            f64::from(whole(line, "round", first)?)
        };
        let number: f64 = value.parse().map_err(|_| {
            format!("line {line}: {} is {}, but must be a number", self.kind.name(), shortened(value))
        })?;
        if let Some(problem) = self.kind.problem(number) {
            return Err(format!("line {line}: {problem}"));
        }
        Ok(Row { at, value: number, device: whole(line, "device", device)?, block, line: line as u32 })
    }
}

fn whole(line: u64, name: &str, field: &str) -> Result<u32, String> {
    field.parse().map_err(|_| {
        let shown = shortened(field);
        format!("line {line}: {name} is {shown}, but must be a whole number from 0 to 4294967295")
    })
}

/// One line of a long file.
struct Row {
    at: f64,
    value: f64,
    device: u32,
    block: u32,
    /// Files are limited so that the number of a line fits.
    line: u32,
}

fn too_long(line: u64) -> String {
    format!("line {line}: a trace may have {MAX_VALUES} numbers; use a part of it")
}

fn long(mut lines: Rows, header: Header) -> Result<Trace, String> {
    let mut rows: Vec<Row> = Vec::new();
    while let Some((line, row)) = lines.next() {
        if rows.len() as u64 >= MAX_VALUES {
            return Err(too_long(line));
        }
        rows.push(header.row(line, row)?);
    }
    let by_series = |a: &Row, b: &Row| (a.device, a.block).cmp(&(b.device, b.block));
    if header.has_times {
        rows.sort_unstable_by(|a, b| by_series(a, b).then(a.line.cmp(&b.line)));
    } else {
        rows.sort_unstable_by(|a, b| by_series(a, b).then(a.at.total_cmp(&b.at)).then(a.line.cmp(&b.line)));
    }
    check_order(&rows, header)?;
    let Some(first) = rows.first() else { return Err("line 1: no row follows the header".into()) };
    if (first.device, first.block) != (0, 0) {
        return Err(format!(
            "line {}: device 0 is missing; this is the first row of another device or block",
            first.line
        ));
    }
    let height = rows.iter().take_while(|row| (row.device, row.block) == (0, 0)).count();
    let blocks = 1 + rows.iter().map(|row| row.block as usize).max().unwrap_or_default();
    check_complete(&rows, height, blocks, header)?;
    let devices = rows.len() / (height * blocks);
    let mut values = vec![0.0; rows.len()];
    for (i, row) in rows.iter().enumerate() {
        let (series, at) = (i / height, i % height);
        values[at * devices * blocks + series] = row.value;
    }
    let times = if header.has_times {
        Times::At(rows[..height].iter().map(|row| row.at).collect())
    } else {
        Times::Rounds
    };
    Ok(Trace { kind: Some(header.kind), times, rows: height, devices, blocks, values })
}

/// Rejects two rows of one device, block and round, and times that do not rise.
fn check_order(rows: &[Row], header: Header) -> Result<(), String> {
    let is_bad = |pair: &&[Row]| {
        (pair[0].device, pair[0].block) == (pair[1].device, pair[1].block) && pair[1].at <= pair[0].at
    };
    let Some([before, row]) = rows.windows(2).find(is_bad) else { return Ok(()) };
    let (line, when, device) = (row.line, header.when(row.at), row.device);
    Err(if header.has_times {
        format!(
            "line {line}: {when} of device {device} is not above {} of line {}; times must rise",
            before.at, before.line
        )
    } else {
        format!("line {line}: {when} of device {device} is already on line {}", before.line)
    })
}

/// Rejects a table with a missing value. `rows` are sorted by device, block and time. The first `height` rows
/// are those of device 0 and block 0, and give the rounds or times of all.
fn check_complete(rows: &[Row], height: usize, blocks: usize, header: Header) -> Result<(), String> {
    let cells = height.saturating_mul(blocks);
    let round_up = rows.len().div_ceil(cells).saturating_mul(cells);
    for i in 0..round_up {
        let (device, block, k) = (i / cells, i / height % blocks, i % height);
        let at = if header.has_times { rows[k].at } else { k as f64 };
        let is_there = rows
            .get(i)
            .is_some_and(|row| (row.device as usize, row.block as usize) == (device, block) && row.at == at);
        if is_there {
            continue;
        }
        let is_extra = |row: &&Row| (row.device as usize, row.block as usize) < (device, block);
        if let Some(row) = rows.get(i).filter(is_extra) {
            let when = header.when(row.at);
            return Err(format!(
                "line {}: device 0 has no row for {when} of device {}",
                row.line, row.device
            ));
        }
        let near = rows[i.min(rows.len() - 1)].line;
        let rb = if header.has_blocks { format!(", rb {block}") } else { String::new() };
        let when = header.when(at);
        return Err(format!(
            "line {near}: near here {when}, device {device}{rb} is missing; every device needs a row for \
             each {} of device 0",
            if header.has_times { "time_s" } else { "round from 0 to the last" }
        ));
    }
    Ok(())
}

fn wide(text: &str) -> Result<Trace, String> {
    let mut values = Vec::new();
    let (mut devices, mut rows) = (0, 0);
    let mut lines = Rows::new(text);
    while let Some((line, row)) = lines.next() {
        for (column, field) in (1..).zip(row) {
            let number: Option<f64> = field.parse().ok().filter(|number: &f64| number.is_finite());
            let problem = || {
                let shown = if field.is_empty() { "is missing" } else { &shortened(field) };
                format!("line {line}, column {column}: {shown}, but must be a finite number")
            };
            values.push(number.ok_or_else(problem)?);
        }
        if values.len() as u64 > MAX_VALUES {
            return Err(too_long(line));
        }
        let width = row.len();
        if rows > 0 && width != devices {
            return Err(format!("line {line}: has {width} columns, but line 1 has {devices}"));
        }
        (devices, rows) = (width, rows + 1);
    }
    if rows == 0 {
        return Err("line 1: is missing; a trace needs a row".into());
    }
    Ok(Trace { kind: None, times: Times::Rounds, rows, devices, blocks: 1, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(file: &str) -> Result<Trace, String> {
        parse(file.as_bytes())
    }

    #[test]
    fn a_long_file_by_rounds_is_read_in_any_order() {
        let trace = text("round, device, gain\n1,0,3\n0,1,2\r\n0,0,1e-3\n1,1,4\n\n").unwrap();
        assert_eq!((trace.rows, trace.devices, trace.blocks), (2, 2, 1));
        assert_eq!((trace.kind, trace.times), (Some(TraceKind::Gain), Times::Rounds));
        assert_eq!(trace.values, [1e-3, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_long_file_by_times_and_blocks_is_read() {
        let rows =
            "10.5,0,-3,0\n10.5,0,1,1\n11,0,2,0\n11,0,3,1\n10.5,1,5,1\n10.5,1,4,0\n11,1,6,0\n11,1,7,1\n";
        let trace = text(&format!("\u{feff}time_s,device,snr_db,rb\n{rows}")).unwrap();
        assert_eq!((trace.rows, trace.devices, trace.blocks), (2, 2, 2));
        assert_eq!((trace.kind, &trace.times), (Some(TraceKind::SnrDb), &Times::At(vec![10.5, 11.0])));
        assert_eq!((trace.at(0, 0), trace.at(0, 1)), (&[-3.0, 1.0][..], &[4.0, 5.0][..]));
        assert_eq!((trace.at(1, 0), trace.at(1, 1)), (&[2.0, 3.0][..], &[6.0, 7.0][..]));
    }

    #[test]
    fn a_wide_file_has_a_round_on_each_line() {
        let trace = text("1, 2,3\n4,5,6\n").unwrap();
        assert_eq!((trace.rows, trace.devices, trace.kind), (2, 3, None));
        assert_eq!(trace.values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            ("round,gain\n0,1\n", "line 1: the header is \"round,gain\", but must be round,device,gain"),
            ("round,device,gain,x\n", "line 1: the header is"),
            ("round,device,gain\n", "line 1: no row follows the header"),
            ("round,device,gain\n0,0,NaN\n", "line 2: gain is NaN, but must be a finite number"),
            ("round,device,gain\n0,0,1\n1,0,-2\n", "line 3: gain is -2, but must be a finite number of at"),
            ("round,device,gain\n0,0,x\n", "line 2: gain is x, but must be a number"),
            ("round,device,gain\n0,0,\n", "line 2: has no gain"),
            ("round,device,gain\n0,0\n", "line 2: has no gain"),
            ("round,device,gain\n0,0,1,2\n", "line 2: has more fields than the header"),
            ("round,device,gain\n\n0,0,1\n", "line 2: has no round"),
            ("round,device,gain\n0.5,0,1\n", "line 2: round is 0.5, but must be a whole number"),
            ("round,device,gain\n0,-1,1\n", "line 2: device is -1, but must be a whole number"),
            ("round,device,gain\n0,0,1\n0,0,2\n", "line 3: round 0 of device 0 is already on line 2"),
            ("round,device,gain\n0,0,1\n2,0,2\n", "line 3: near here round 1, device 0 is missing"),
            ("round,device,gain\n1,0,1\n", "line 2: near here round 0, device 0 is missing"),
            ("round,device,gain\n0,1,1\n", "line 2: device 0 is missing"),
            ("round,device,gain\n0,0,1\n0,4294967295,1\n", "line 3: near here round 0, device 1 is missing"),
            ("round,device,gain\n0,0,1\n1,0,1\n0,1,1\n", "line 4: near here round 1, device 1 is missing"),
            (
                "round,device,gain\n0,0,1\n0,1,1\n1,1,1\n",
                "line 4: device 0 has no row for round 1 of device 1",
            ),
            ("round,device,gain,rb\n0,0,1,0\n0,0,1,4294967295\n", "round 0, device 0, rb 1 is missing"),
            ("time_s,device,gain\n1,0,1\n1,0,1\n", "line 3: time_s 1 of device 0 is not above 1 of line 2"),
            ("time_s,device,gain\n2,0,1\n1,0,1\n", "line 3: time_s 1 of device 0 is not above 2 of line 2"),
            ("time_s,device,gain\n1,0,1\n2,1,1\n", "line 3: near here time_s 1, device 1 is missing"),
            ("time_s,device,gain\ninf,0,1\n", "line 2: time_s is inf, but must be a finite number"),
            ("1,2\n3\n", "line 2: has 1 columns, but line 1 has 2"),
            ("1,2\n3,,4\n", "line 2, column 2: is missing, but must be a finite number"),
            ("1,inf\n", "line 1, column 2: inf, but must be a finite number"),
            ("", "line 1: is missing; a trace needs a row"),
            ("\n,1\n", "line 1, column 1: is missing"),
        ];
        for (file, expected) in cases {
            let problem = text(file).unwrap_err();
            assert!(problem.contains(expected), "{file}\n{problem}\nshould contain\n{expected}");
        }
        let problem = parse(b"1,2\n3,\xff\n").unwrap_err();
        assert!(problem.starts_with("line 2: is not UTF-8"), "{problem}");
    }

    fn check(file: &[u8]) {
        if let Ok(trace) = parse(file) {
            assert_eq!(trace.values.len(), trace.rows * trace.devices * trace.blocks);
            assert!(trace.values.iter().all(|value| value.is_finite()) && !trace.values.is_empty());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(body in "[0-9,.e\\-\n ]{0,80}", blocks in any::<bool>()) {
            check(body.as_bytes());
            for header in ["round,device,gain", "time_s,device,snr_db"] {
                check(format!("{header}{}\n{body}", if blocks { ",rb" } else { "" }).as_bytes());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            check(&file);
        }

        #[test]
        fn any_order_of_rows_gives_one_trace(order in Just((0..12).collect::<Vec<u32>>()).prop_shuffle()) {
            let line = |i: &u32| format!("{},{},{},{}\n", i / 4, i / 2 % 2, i, i % 2);
            let body: String = order.iter().map(line).collect();
            let trace = text(&format!("round,device,rate_bps,rb\n{body}")).unwrap();
            prop_assert_eq!((trace.rows, trace.devices, trace.blocks), (3, 2, 2));
            prop_assert_eq!(trace.values, (0..12).map(f64::from).collect::<Vec<f64>>());
        }
    }
}
