//! The header and the numbers of one `.npy` array.
//!
//! A file is `\x93NUMPY`, a version (major, minor), the length of the header (u16 in version 1, u32 in
//! versions 2 and 3), the header as a Python dictionary of `descr`, `fortran_order` and `shape`, then the
//! numbers.

use std::io::Read;

use super::super::error::{Flaw, Position};
use super::super::source::FETCH_AGAIN;
use super::dictionary::Dictionary;

/// Longer headers are refused, as `numpy.load` refuses them; a plain array needs some hundred bytes.
const MAX_HEADER: u32 = 10_000;
/// The number of numbers that are decoded at a time.
const CHUNK: u64 = 8192;

const SAVE_AGAIN: &str = "save the arrays with numpy.savez or numpy.savez_compressed";

/// The kinds of number that an array can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// The fields of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    /// Bytes per number: 1, 2, 4 or 8.
    pub width: usize,
    pub big_endian: bool,
    /// Not empty, no dimension is zero, and the product fits into a u64 even if multiplied by 8.
    pub shape: Vec<usize>,
    /// The offset of the numbers.
    pub start: u64,
}

/// One array while it is read. `name` is for messages.
pub(super) struct Array<'a, R> {
    name: &'a str,
    reader: R,
    pub header: Header,
}

impl<'a, R: Read> Array<'a, R> {
    /// Reads the header.
    pub(super) fn open(name: &'a str, mut reader: R) -> Result<Self, Flaw> {
        let mut prefix = [0; 8];
        read(name, &mut reader, 0, &mut prefix)?;
        let [m0, m1, m2, m3, m4, m5, major, _] = prefix;
        if [m0, m1, m2, m3, m4, m5] != *b"\x93NUMPY" {
            return Err(Flaw::new(at(name, 0), "this does not start as a .npy array does", SAVE_AGAIN));
        }
        let (length, text_start) = match major {
            1 => {
                let mut bytes = [0; 2];
                read(name, &mut reader, 8, &mut bytes)?;
                (u32::from(u16::from_le_bytes(bytes)), 10)
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                read(name, &mut reader, 8, &mut bytes)?;
                (u32::from_le_bytes(bytes), 12)
            }
            _ => {
                let what = format!("version {major} of the .npy format is unknown; 1, 2 and 3 are known");
                return Err(Flaw::new(at(name, 6), what, SAVE_AGAIN));
            }
        };
        if length > MAX_HEADER {
            let what = format!("the header takes {length} bytes, more than the {MAX_HEADER} allowed");
            return Err(Flaw::new(at(name, 8), what, SAVE_AGAIN));
        }
        let mut text = vec![0; length as usize];
        read(name, &mut reader, text_start, &mut text)?;
        let Dictionary { descr, fortran_order, shape } = Dictionary::parse(&text)
            .map_err(|(offset, what)| Flaw::new(at(name, text_start + offset as u64), what, SAVE_AGAIN))?;
        let whole = at(name, text_start);
        if fortran_order {
            return Err(Flaw::new(
                whole,
                "the array is in Fortran order (columns first)",
                format!("save numpy.ascontiguousarray({name}) instead"),
            ));
        }
        let Some((kind, width, big_endian)) = number_type(&descr) else {
            return Err(Flaw::new(
                whole,
                format!("type '{descr}' is not known"),
                format!("save {name}.astype('float32'), or 'uint8' for pixels and labels"),
            ));
        };
        let product = shape.iter().try_fold(8u64, |product, &n| product.checked_mul(n as u64));
        if shape.is_empty() || product.is_none_or(|product| product == 0) {
            let what = format!("shape {shape:?} holds no number, or more than can be counted");
            return Err(Flaw::new(whole, what, SAVE_AGAIN));
        }
        let header = Header { kind, width, big_endian, shape, start: text_start + u64::from(length) };
        Ok(Array { name, reader, header })
    }

    /// The length of the numbers in bytes.
    pub(super) fn payload(&self) -> u64 {
        self.header.shape.iter().map(|&n| n as u64).product::<u64>() * self.header.width as u64
    }

    /// Passes the bytes of every number in turn to `each`, which may reject one with a reason and a
    /// remedy; then checks that the array ends.
    pub(super) fn read(
        mut self,
        mut each: impl FnMut(&Header, &[u8]) -> Result<(), (String, String)>,
    ) -> Result<(), Flaw> {
        let width = self.header.width as u64;
        let mut left = self.payload() / width;
        let mut offset = self.header.start;
        let mut buffer = vec![0; (left.min(CHUNK) * width) as usize];
        while left > 0 {
            let count = left.min(CHUNK);
            let chunk = &mut buffer[..(count * width) as usize];
            read(self.name, &mut self.reader, offset, chunk)?;
            for number in chunk.chunks_exact(self.header.width) {
                each(&self.header, number)
                    .map_err(|(what, fix)| Flaw::new(at(self.name, offset), what, fix))?;
                offset += width;
            }
            left -= count;
        }
        // The archive compares its checksum when it is read to the end.
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Flaw::new(
                at(self.name, offset),
                "the array should end here by its own header, but more bytes follow",
                FETCH_AGAIN,
            )),
            Err(error) => {
                Err(Flaw::new(at(self.name, offset), format!("the data is broken ({error})"), FETCH_AGAIN))
            }
        }
    }
}

impl Header {
    /// A number as a float. f64 becomes the nearest f32; `None` if that is not finite.
    pub(super) fn float(&self, number: &[u8]) -> Option<f32> {
        let bits = self.bits(number);
        let value = if self.width == 4 { f32::from_bits(bits as u32) } else { f64::from_bits(bits) as f32 };
        value.is_finite().then_some(value)
    }

    /// A number of any kind as a double; `None` if it is not finite.
    pub(super) fn double(&self, number: &[u8]) -> Option<f64> {
        let value = match (self.kind, self.width) {
            (Kind::Float, 4) => f64::from(f32::from_bits(self.bits(number) as u32)),
            (Kind::Float, _) => f64::from_bits(self.bits(number)),
            _ => self.integer(number) as f64,
        };
        value.is_finite().then_some(value)
    }

    /// A number as an integer.
    pub(super) fn integer(&self, number: &[u8]) -> i128 {
        let bits = self.bits(number);
        let unused = 64 - 8 * self.width as u32;
        match self.kind {
            // Shifting up and back down extends the sign to the unused bits.
            Kind::Signed => i128::from((bits << unused) as i64 >> unused),
            Kind::Unsigned | Kind::Float => i128::from(bits),
        }
    }

    fn bits(&self, number: &[u8]) -> u64 {
        let push = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
        if self.big_endian { number.iter().fold(0, push) } else { number.iter().rev().fold(0, push) }
    }
}

fn at(name: &str, offset: u64) -> Position {
    Position::Array(name.to_owned(), offset)
}

fn read(name: &str, reader: &mut impl Read, offset: u64, into: &mut [u8]) -> Result<(), Flaw> {
    reader.read_exact(into).map_err(|error| {
        let what = format!("{} bytes should follow here, but cannot be read ({error})", into.len());
        Flaw::new(at(name, offset), what, FETCH_AGAIN)
    })
}

/// Kind, bytes and byte order of a type such as `<f4`; one-byte types write `|` for the order.
fn number_type(descr: &str) -> Option<(Kind, usize, bool)> {
    let [order, kind, width] = *descr.as_bytes() else { return None };
    let kind = match kind {
        b'u' => Kind::Unsigned,
        b'i' => Kind::Signed,
        b'f' => Kind::Float,
        _ => return None,
    };
    let width = usize::from(width.checked_sub(b'0')?);
    let known = match kind {
        Kind::Float => matches!(width, 4 | 8),
        Kind::Unsigned | Kind::Signed => matches!(width, 1 | 2 | 4 | 8),
    };
    let ordered = matches!(order, b'<' | b'>') || (order == b'|' && width == 1);
    (known && ordered).then_some((kind, width, order == b'>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `.npy` file with this dictionary as its header.
    fn npy(major: u8, dictionary: &str, payload: &[u8]) -> Vec<u8> {
        let mut file = b"\x93NUMPY".to_vec();
        file.extend([major, 0]);
        match major {
            1 => file.extend((dictionary.len() as u16).to_le_bytes()),
            _ => file.extend((dictionary.len() as u32).to_le_bytes()),
        }
        file.extend(dictionary.as_bytes());
        file.extend(payload);
        file
    }

    fn open(dictionary: &str) -> Result<Header, String> {
        let file = npy(1, dictionary, &[]);
        Array::open("x_train", &file[..]).map(|array| array.header).map_err(|flaw| flaw.to_string())
    }

    #[test]
    fn versions_1_2_and_3_and_any_spacing_are_read() {
        let dictionaries = [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }           \n",
            "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False}",
        ];
        for dictionary in dictionaries {
            for (major, prefix) in [(1, 10), (2, 12), (3, 12)] {
                let file = npy(major, dictionary, &[0; 24]);
                let array = Array::open("x_train", &file[..]).unwrap();
                assert_eq!(array.payload(), 24);
                let start = prefix + dictionary.len() as u64;
                let shape = vec![2, 3];
                assert_eq!(
                    array.header,
                    Header { kind: Kind::Float, width: 4, big_endian: false, shape, start }
                );
                array.read(|_, _| Ok(())).unwrap();
            }
        }
    }

    #[test]
    fn a_header_that_is_not_understood_is_refused_with_its_position() {
        let cases = [
            ("", "byte 10: expected '{'"),
            ("{'descr': '<f4', 'shape': (2,)}", "lacks one of descr, fortran_order, shape"),
            (
                "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
                "a plain number type in quotes",
            ),
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", "type '<c8' is not known"),
            ("{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", "type '|f4' is not known"),
            ("{'descr': '<f2', 'fortran_order': False, 'shape': (2,)}", "type '<f2' is not known"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", "numpy.ascontiguousarray(x_train)"),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "byte 44: expected True or False"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "shape [] holds no number"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5)}", "shape [0, 5] holds no number"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "expected a whole number"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "below 2⁶⁴"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,)}", "can be counted"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1)}", "more than 4 dimensions"),
            ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "each once"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "something follows"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "expected a whole number"),
            ("{'descr': '<f4", "a quote is not closed"),
        ];
        for (dictionary, expected) in cases {
            let flaw = open(dictionary).unwrap_err();
            assert!(flaw.contains(expected), "{dictionary}\n{flaw}\nshould contain\n{expected}");
        }
    }

    #[test]
    fn a_prefix_that_is_not_npy_is_refused() {
        let flaw = |file: &[u8]| Array::open("x", file).err().unwrap().to_string();
        assert!(flaw(b"").contains("array x, byte 0: 8 bytes should follow"));
        assert!(flaw(b"\x93NUMPX\x01\0\0\0").contains("does not start as a .npy array"));
        assert!(flaw(b"\x93NUMPY\x04\0\0\0").contains("byte 6: version 4"));
        assert!(flaw(b"\x93NUMPY\x02\0\xff\xff\xff\xff").contains("header takes 4294967295 bytes"));
        assert!(flaw(b"\x93NUMPY\x01\0\xff").contains("byte 8: 2 bytes should follow"));
    }

    #[test]
    fn every_width_and_order_of_integers_is_decoded() {
        for (kind, big_endian, bytes, expected) in [
            (Kind::Unsigned, false, &[0xfe][..], 254),
            (Kind::Signed, false, &[0xfe], -2),
            (Kind::Unsigned, false, &[1, 2], 513),
            (Kind::Unsigned, true, &[1, 2], 258),
            (Kind::Signed, true, &[0xff, 0xff, 0xff, 0xfd], -3),
            (Kind::Signed, false, &[0, 0, 0, 0, 0, 0, 0, 0x80], i128::from(i64::MIN)),
            (Kind::Unsigned, false, &[0xff; 8], i128::from(u64::MAX)),
        ] {
            let header = Header { kind, width: bytes.len(), big_endian, shape: vec![1], start: 0 };
            assert_eq!(header.integer(bytes), expected);
        }
    }

    #[test]
    fn floats_are_decoded_and_only_finite_ones_pass() {
        let header =
            |width, big_endian| Header { kind: Kind::Float, width, big_endian, shape: vec![1], start: 0 };
        assert_eq!(header(4, false).float(&1.5f32.to_le_bytes()), Some(1.5));
        assert_eq!(header(4, true).float(&(-0.1f32).to_be_bytes()), Some(-0.1));
        assert_eq!(header(8, false).float(&0.1f64.to_le_bytes()), Some(0.1f32));
        assert_eq!(header(8, true).float(&2.5f64.to_be_bytes()), Some(2.5));
        assert_eq!(header(8, false).float(&1e39f64.to_le_bytes()), None);
        assert_eq!(header(4, false).float(&f32::NAN.to_le_bytes()), None);
        assert_eq!(header(4, false).float(&f32::NEG_INFINITY.to_le_bytes()), None);
        assert_eq!(header(4, true).double(&0.1f32.to_be_bytes()), Some(f64::from(0.1f32)));
        assert_eq!(header(8, false).double(&1e300f64.to_le_bytes()), Some(1e300));
        assert_eq!(header(8, false).double(&f64::NAN.to_le_bytes()), None);
    }
}
