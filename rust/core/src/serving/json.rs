//! Contexts in a JSON body, read straight into the numbers that are kept.
//!
//! Reads the plain bodies that clients send all day and nothing else: one object with `contexts` (nested lists
//! of numbers, of equal lengths) and perhaps `user` and `key`. Whatever is not such a body, malformed or only
//! unusual (escapes, `null` among numbers, a member twice, huge integers), is `None`: a general parser then
//! reads it, and says what is wrong. A number is the double nearest to its text, as of every correct parser,
//! rounded once more where single precision is kept.

use crate::matrix::scalar::Real;

/// Lists in lists at most: rounds of arms of columns.
const DEEPEST: usize = 3;
/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// Integers up to here are doubles.
const EXACT: u64 = 1 << 53;
/// So many digits fit 64 bits, whatever they are, with a sign.
const MOST_DIGITS: usize = 18;

/// The id of a user, or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// There is none.
    Missing,
    /// Text, as it stands in the body.
    Text(&'a str),
    /// An integer.
    Number(i64),
}

/// What a plain body says.
#[derive(Debug, Clone, PartialEq)]
pub struct Body<'a, T> {
    /// All numbers, one after the other.
    pub values: Vec<T>,
    /// How many lists there are at each depth, outermost first; last, how many numbers in each.
    pub shape: Vec<usize>,
    /// Whose round it is.
    pub user: Name<'a>,
    /// What makes it safe to repeat.
    pub key: Name<'a>,
}

/// Read a body whose innermost lists have `dim` numbers; `None` if it is not a plain one.
pub fn read<T: Real>(text: &[u8], dim: usize) -> Option<Body<'_, T>> {
    let mut reader = Reader { text, at: 0 };
    let (mut numbers, mut user, mut key) = (None, None, None);
    reader.expect(b'{')?;
    loop {
        let member = reader.string()?;
        reader.expect(b':')?;
        match member {
            "contexts" if numbers.is_none() => numbers = Some(reader.contexts::<T>(dim)?),
            "user" if user.is_none() => user = Some(reader.name()?),
            "key" if key.is_none() => key = Some(reader.name()?),
            _ => return None,
        }
        match reader.token()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    if reader.skip_spaces().is_some() {
        return None;
    }
    let (values, shape) = numbers?;
    Some(Body { values, shape, user: user.unwrap_or(Name::Missing), key: key.unwrap_or(Name::Missing) })
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte that is no space, which stays.
    fn skip_spaces(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Take the next byte that is no space.
    fn token(&mut self) -> Option<u8> {
        let byte = self.skip_spaces()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.token()? == wanted).then_some(())
    }

    /// Text without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
        if rest[length] != b'"' {
            return None;
        }
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).ok()
    }

    fn name(&mut self) -> Option<Name<'a>> {
        match self.skip_spaces()? {
            b'"' => self.string().map(Name::Text),
            _ => {
                let number = self.number()?;
                (number.whole && number.digits <= MOST_DIGITS).then(|| {
                    let size = number.mantissa as i64;
                    Name::Number(if number.negative { -size } else { size })
                })
            }
        }
    }

    /// Nested lists of equal lengths, the innermost of `dim` numbers.
    fn contexts<T: Real>(&mut self, dim: usize) -> Option<(Vec<T>, Vec<usize>)> {
        let mut values = Vec::with_capacity((self.text.len() - self.at) / 8);
        let mut depth = 0;
        while self.skip_spaces()? == b'[' {
            self.at += 1;
            depth += 1;
            if depth > DEEPEST {
                return None;
            }
        }
        if depth == 0 {
            return None;
        }
        // How many there are in the list that is open at each depth, and in the first one that was closed.
        let (mut open, mut shape) = ([0usize; DEEPEST], [0usize; DEEPEST]);
        shape[depth - 1] = dim;
        loop {
            for _ in 0..dim {
                if open[depth - 1] > 0 {
                    self.expect(b',')?;
                    self.skip_spaces()?;
                }
                values.push(T::from_f64(self.number()?.value()?));
                open[depth - 1] += 1;
            }
            // Close lists, then open as many as were closed.
            let mut level = depth;
            loop {
                if self.token()? != b']' {
                    return None;
                }
                level -= 1;
                if shape[level] == 0 {
                    shape[level] = open[level];
                } else if shape[level] != open[level] {
                    return None;
                }
                open[level] = 0;
                if level == 0 {
                    return Some((values, shape[..depth].to_vec()));
                }
                open[level - 1] += 1;
                if self.skip_spaces()? == b',' {
                    self.at += 1;
                    break;
                }
            }
            for _ in level..depth {
                self.expect(b'[')?;
            }
            self.skip_spaces()?;
        }
    }

    /// A number in JSON's own grammar, at the next byte.
    fn number(&mut self) -> Option<Number<'a>> {
        let start = self.at;
        let negative = self.peek()? == b'-';
        self.at += usize::from(negative);
        let (mut mantissa, mut digits) = (0u64, 0usize);
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            digits = self.digits(&mut mantissa)?;
        }
        let mut number = Number { text: &[], negative, whole: true, mantissa, digits, exponent: 0 };
        if self.peek()? == b'.' {
            self.at += 1;
            let places = self.digits(&mut number.mantissa)?;
            number.whole = false;
            number.digits += places;
            number.exponent = -i32::try_from(places).ok()?;
        }
        if matches!(self.peek()?, b'e' | b'E') {
            self.at += 1;
            number.whole = false;
            let below = self.peek()? == b'-';
            self.at += usize::from(below || self.peek()? == b'+');
            let mut power = 0;
            if self.digits(&mut power)? > 4 {
                return None;
            }
            let power = power as i32;
            number.exponent += if below { -power } else { power };
        }
        number.text = &self.text[start..self.at];
        Some(number)
    }

    /// One digit or more: how many, and what they add to a number. More than fit it are counted all the same.
    fn digits(&mut self, value: &mut u64) -> Option<usize> {
        let start = self.at;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            *value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }
}

struct Number<'a> {
    text: &'a [u8],
    negative: bool,
    /// Without a point and an exponent.
    whole: bool,
    /// All digits as one number, if they fit.
    mantissa: u64,
    digits: usize,
    exponent: i32,
}

impl Number<'_> {
    /// The nearest double; `None` if there is none, or the text is an integer that Python would keep as one.
    fn value(&self) -> Option<f64> {
        let power = self.exponent.unsigned_abs() as usize;
        if self.digits <= MOST_DIGITS && self.mantissa <= EXACT && power < POWERS.len() {
            // Both numbers are exact, so that one operation rounds once.
            let size = self.mantissa as f64;
            let size = if self.exponent < 0 { size / POWERS[power] } else { size * POWERS[power] };
            // An integer has no zero below zero.
            return Some(if self.negative && !(self.whole && self.mantissa == 0) { -size } else { size });
        }
        if self.whole && self.digits > MOST_DIGITS {
            return None;
        }
        let value: f64 = std::str::from_utf8(self.text).ok()?.parse().ok()?;
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts(text: &str, dim: usize) -> Option<(Vec<f64>, Vec<usize>)> {
        read::<f64>(format!("{{\"contexts\":{text}}}").as_bytes(), dim).map(|body| (body.values, body.shape))
    }

    #[test]
    fn numbers_are_the_nearest_doubles() {
        for text in [
            "0",
            "-0.0",
            "1",
            "-17",
            "0.1",
            "1e22",
            "1e23",
            "-1e-22",
            "1e-23",
            "123456789012345678",
            "0.1e1",
            "9007199254740993",
            "9007199254740993.0",
            "4.9e-324",
            "2.4703282292062327e-324",
            "1.7976931348623157e308",
            "0.30000000000000004",
            "179769313486231570000e288",
            "1E+2",
            "12345678901234567890.5e-3",
        ] {
            let expected: f64 = text.parse().expect("a number");
            let found = contexts(&format!("[{text}]"), 1).unwrap_or_else(|| panic!("{text}")).0[0];
            assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
        }
        assert_eq!(contexts("[-0]", 1).expect("plain").0[0].to_bits(), 0);
    }

    #[test]
    fn single_precision_is_rounded_from_the_double() {
        // Half way between two floats as a double, and a little above it as text.
        let text = b"{\"contexts\":[1.00000005960464477539062500001]}";
        assert_eq!(read::<f32>(text, 1).expect("plain").values, [1.0f32]);
        assert_eq!(read::<f32>(b"{\"contexts\":[1e39]}", 1).expect("plain").values, [f32::INFINITY]);
    }

    #[test]
    fn shapes_are_those_of_equal_lists() {
        assert_eq!(contexts("[1,2]", 2), Some((vec![1.0, 2.0], vec![2])));
        assert_eq!(contexts(" [ [1 , 2] , [3,4],[5,6] ] ", 2).expect("plain").1, [3, 2]);
        assert_eq!(contexts("[[[1],[2]],[[3],[4]],[[5],[6]]]", 1).expect("plain").1, [3, 2, 1]);
        for text in [
            "1",
            "[]",
            "[[]]",
            "[[1,2],[3]]",
            "[[1,2],3]",
            "[1,[2]]",
            "[[[1,2]],[[1,2],[3,4]]]",
            "[[1,2],[[3,4]]]",
            "[[[[1,2]]]]",
            "[[1,2],]",
            "[[1,2]",
            "[1,2",
            "[1 2]",
            "[,1]",
            "[1,2,3]",
        ] {
            assert_eq!(contexts(text, 2), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_others() {
        for text in [
            "",
            "{",
            "{}",
            "[]",
            "null",
            "{\"contexts\":[1]",
            "{\"contexts\":[1]}x",
            "{\"contexts\":[1],}",
            "{\"contexts\":[1],\"contexts\":[1]}",
            "{\"contexts\":[1],\"user\":\"a\\u0062\"}",
            "{\"user\":1}",
            "{\"contexts\":[1],\"user\":1.0}",
            "{\"contexts\":[1],\"user\":true}",
            "{\"contexts\":[1],\"users\":[1]}",
            "{\"contexts\":[null]}",
            "{\"contexts\":[NaN]}",
            "{\"contexts\":[01]}",
            "{\"contexts\":[1.]}",
            "{\"contexts\":[.5]}",
            "{\"contexts\":[+1]}",
            "{\"contexts\":[1e]}",
            "{\"contexts\":[-]}",
            "{\"contexts\":[1e999]}",
            "{\"contexts\":[1e99999]}",
            "{\"contexts\":[1234567890123456789]}",
            "{\"contexts\":[1],\"key\":\"\n\"}",
            "{\"contexts\":[1],\"key\":null}",
            "{contexts:[1]}",
        ] {
            assert_eq!(read::<f32>(text.as_bytes(), 1), None, "{text}");
        }
        assert_eq!(read::<f32>(b"{\"contexts\":[1],\"key\":\"\xff\"}", 1), None);
    }

    #[test]
    fn names_are_text_or_integers_in_any_order() {
        let body =
            read::<f32>("{\"key\": \"ö k\", \"contexts\": [1], \"user\": -12}".as_bytes(), 1).expect("plain");
        assert_eq!((body.user, body.key), (Name::Number(-12), Name::Text("ö k")));
        let body = read::<f32>(b"{\"contexts\": [1]}", 1).expect("plain");
        assert_eq!((body.user, body.key), (Name::Missing, Name::Missing));
    }
}
