//! The dictionary in the header of a `.npy` array.
//!
//! A plain array needs a string, a truth value and a tuple of whole numbers, so the parser supports only
//! these. A header cannot make it recurse or hold more than its own text; a general parser of Python
//! literals would accept nesting and integers of any length.

/// A sample has at most height, width and channels as dimensions, and the array has one more.
const MAX_DIMENSIONS: usize = 4;

/// The parsed value, or an offset and the problem there.
type Parsed<T> = Result<T, (usize, String)>;

/// The entries of the dictionary.
pub(super) struct Dictionary {
    /// The type of number, such as `<f4`.
    pub descr: String,
    /// Whether the first dimension, not the last, is the fastest.
    pub fortran_order: bool,
    /// The dimensions.
    pub shape: Vec<usize>,
}

impl Dictionary {
    pub(super) fn parse(text: &[u8]) -> Parsed<Self> {
        Literal { text, at: 0 }.dictionary()
    }
}

/// A reader of Python text.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl Literal<'_> {
    fn dictionary(&mut self) -> Parsed<Dictionary> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let start = self.at;
            let key = self.string()?;
            self.expect(b':')?;
            let known = match key.as_str() {
                "descr" => descr.replace(self.string()?).is_none(),
                "fortran_order" => fortran.replace(self.truth()?).is_none(),
                "shape" => shape.replace(self.tuple()?).is_none(),
                _ => false,
            };
            if !known {
                return Err((
                    start,
                    format!("key '{key}' is not one of descr, fortran_order, shape, each once"),
                ));
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.spaces();
        if self.at != self.text.len() {
            return Err((self.at, "something follows the header's closing brace".into()));
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Dictionary { descr, fortran_order, shape }),
            _ => Err((0, "the header lacks one of descr, fortran_order, shape".into())),
        }
    }

    fn spaces(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.spaces();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err((self.at, format!("expected '{}'", char::from(byte)))) }
    }

    fn string(&mut self) -> Parsed<String> {
        let start = self.at;
        let quote = if self.take(b'"') { b'"' } else { b'\'' };
        if quote == b'\'' && !self.take(quote) {
            return Err((start, "expected a name or a plain number type in quotes".into()));
        }
        let rest = &self.text[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == quote) else {
            return Err((start, "a quote is not closed".into()));
        };
        self.at += length + 1;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn truth(&mut self) -> Parsed<bool> {
        self.spaces();
        let rest = &self.text[self.at..];
        let (value, length) = match rest {
            [b'T', b'r', b'u', b'e', ..] => (true, 4),
            [b'F', b'a', b'l', b's', b'e', ..] => (false, 5),
            _ => return Err((self.at, "expected True or False".into())),
        };
        self.at += length;
        Ok(value)
    }

    fn tuple(&mut self) -> Parsed<Vec<usize>> {
        let start = self.at;
        let mut values = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            if values.len() == MAX_DIMENSIONS {
                return Err((start, format!("the array has more than {MAX_DIMENSIONS} dimensions")));
            }
            values.push(self.whole_number()?);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(values)
    }

    fn whole_number(&mut self) -> Parsed<usize> {
        self.spaces();
        let start = self.at;
        self.at += self.text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        digits.parse().map_err(|_| (start, "expected a whole number below 2⁶⁴".into()))
    }
}
