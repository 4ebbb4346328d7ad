//! Traces as arrays of `NumPy`.

use super::{MAX_VALUES, Times, Trace, TraceKind};
use crate::data::npz::{Numbers, numbers_of_npy, numbers_of_npz};

/// The arrays of an archive: one of the first three, and at most one of the others.
const NAMES: [&str; 5] = ["gain", "snr_db", "rate_bps", "dt_s", "time_s"];

/// Parses an NPY or NPZ file.
pub fn parse(file: &[u8]) -> Result<Trace, String> {
    if !file.starts_with(b"PK") {
        let numbers = numbers_of_npy(file, "trace", MAX_VALUES).map_err(|flaw| flaw.to_string())?;
        return shaped(numbers, None, Times::Rounds);
    }
    let arrays = numbers_of_npz(file, &NAMES, MAX_VALUES).map_err(|flaw| flaw.to_string())?;
    // One entry for each of the five names.
    let Ok([gain, snr_db, rate_bps, dt_s, time_s]) = <[Option<Numbers>; 5]>::try_from(arrays) else {
        return Err("the archive could not be read".into());
    };
    let mut given = TraceKind::ALL
        .into_iter()
        .zip([gain, snr_db, rate_bps])
        .filter_map(|(kind, array)| Some((kind, array?)));
    let one = "name one array gain, snr_db or rate_bps";
    let Some((kind, numbers)) = given.next() else { return Err(format!("there is no trace in it; {one}")) };
    if let Some((other, _)) = given.next() {
        return Err(format!("has both {} and {}; {one}", kind.name(), other.name()));
    }
    let times = match (dt_s, time_s) {
        (None, None) => Times::Rounds,
        (Some(_), Some(_)) => return Err("has both dt_s and time_s; keep one of them".into()),
        (Some(step), None) => match step.values[..] {
            [step] if step > 0.0 => Times::Step(step),
            _ => return Err("array dt_s must hold one number above 0".into()),
        },
        (None, Some(times)) => {
            if let Some(i) = not_rising(&times.values) {
                return Err(format!(
                    "array time_s, entry {i}: {} is not above the one before",
                    times.values[i]
                ));
            }
            Times::At(times.values)
        }
    };
    shaped(numbers, Some(kind), times)
}

fn shaped(numbers: Numbers, kind: Option<TraceKind>, times: Times) -> Result<Trace, String> {
    let Numbers { shape, values } = numbers;
    let (rows, devices, blocks) = match shape[..] {
        [rows, devices] => (rows, devices, 1),
        [rows, devices, blocks] => (rows, devices, blocks),
        _ => {
            let needed = "rounds × devices, or rounds × devices × resource blocks";
            return Err(format!("shape {shape:?} is not that of a trace; save {needed}"));
        }
    };
    if let Some(kind) = kind {
        let bad = values.iter().enumerate().find_map(|(i, &value)| Some((i, kind.problem(value)?)));
        if let Some((i, problem)) = bad {
            let (row, device) = (i / (devices * blocks), i / blocks % devices);
            return Err(format!("row {row}, device {device}: {problem}"));
        }
    }
    if let Times::At(times) = &times
        && times.len() != rows
    {
        return Err(format!("array time_s has {} entries, but there are {rows} rows", times.len()));
    }
    Ok(Trace { kind, times, rows, devices, blocks, values })
}

/// The first pair of `times` that does not rise, as the index of the later one.
fn not_rising(times: &[f64]) -> Option<usize> {
    times.windows(2).position(|pair| pair[1] <= pair[0]).map(|i| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Cursor, Write};
    use zip::write::{SimpleFileOptions, ZipWriter};

    fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        values.iter().for_each(|value| file.extend(value.to_le_bytes()));
        file
    }

    fn npz(arrays: &[(&str, &str, &[f64])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, shape, values) in arrays {
            writer.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            writer.write_all(&npy(shape, values)).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_plain_array_has_rounds_devices_and_blocks() {
        let trace = parse(&npy("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
        assert_eq!((trace.rows, trace.devices, trace.blocks, trace.kind), (2, 3, 1, None));
        assert_eq!(trace.at(1, 2), [6.0]);
        let trace = parse(&npy("(1, 3, 2)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
        assert_eq!((trace.rows, trace.devices, trace.blocks), (1, 3, 2));
        assert_eq!(trace.at(0, 1), [3.0, 4.0]);
    }

    #[test]
    fn the_name_of_an_array_is_its_kind_and_times_are_optional() {
        let trace = parse(&npz(&[("snr_db", "(2, 1)", &[-3.0, 9.0])])).unwrap();
        assert_eq!((trace.kind, trace.times), (Some(TraceKind::SnrDb), Times::Rounds));
        let trace = parse(&npz(&[("gain", "(2, 1)", &[3.0, 9.0]), ("dt_s", "(1,)", &[0.5])])).unwrap();
        assert_eq!((trace.kind, trace.times), (Some(TraceKind::Gain), Times::Step(0.5)));
        let trace =
            parse(&npz(&[("rate_bps", "(2, 1)", &[3.0, 9.0]), ("time_s", "(2,)", &[1.0, 4.0])])).unwrap();
        assert_eq!((trace.kind, trace.times), (Some(TraceKind::RateBps), Times::At(vec![1.0, 4.0])));
    }

    #[test]
    fn errors_name_the_array() {
        let one: (&str, &str, &[f64]) = ("gain", "(1, 1)", &[1.0]);
        let cases = [
            (npy("(4,)", &[0.0; 4]), "shape [4] is not that of a trace"),
            (npy("(1, 2)", &[0.0, f64::NAN]), "a number is not finite"),
            (npy("(2, 2)", &[0.0; 3]), "takes 32 bytes"),
            (npy("(67108864, 2)", &[0.0; 3]), "takes 1073741824 bytes"),
            (npz(&[]), "there is no trace in it; name one array gain, snr_db or rate_bps"),
            (npz(&[("gain", "(2, 1)", &[1.0, -1.0])]), "row 1, device 0: gain is -1, but must be"),
            (npz(&[one, ("snr_db", "(1, 1)", &[1.0])]), "has both gain and snr_db"),
            (npz(&[one, ("dt_s", "(1,)", &[0.0])]), "dt_s must hold one number above 0"),
            (npz(&[one, ("dt_s", "(2,)", &[1.0, 1.0])]), "dt_s must hold one number above 0"),
            (npz(&[one, ("time_s", "(2,)", &[1.0, 1.0])]), "array time_s, entry 1: 1 is not above"),
            (npz(&[one, ("time_s", "(2,)", &[1.0, 2.0])]), "time_s has 2 entries, but there are 1 rows"),
            (npz(&[one, ("dt_s", "(1,)", &[1.0]), ("time_s", "(1,)", &[1.0])]), "both dt_s and time_s"),
            (b"PK\x03\x04".to_vec(), "not a readable .npz archive"),
            (b"\x93NUMPY".to_vec(), "8 bytes should follow"),
        ];
        for (file, expected) in cases {
            let problem = parse(&file).unwrap_err();
            assert!(problem.contains(expected), "{problem}\nshould contain\n{expected}");
        }
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(at in 0usize..400, byte in any::<u8>(), zipped in any::<bool>()) {
            let arrays: [(&str, &str, &[f64]); 2] = [("gain", "(2, 2)", &[1.0; 4]), ("dt_s", "(1,)", &[0.5])];
            let mut file = if zipped { npz(&arrays) } else { npy("(2, 2)", &[1.0; 4]) };
            let at = at % file.len();
            file[at] = byte;
            if let Ok(trace) = super::super::parse(&file) {
                prop_assert_eq!(trace.values.len(), trace.rows * trace.devices * trace.blocks);
            }
        }
    }
}
