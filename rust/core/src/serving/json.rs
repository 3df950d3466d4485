//! Bodies of requests: JSON, read once, by these rules alone.
//!
//! A body is an object. Its member `contexts` (nested lists of numbers, of equal lengths) is read straight into
//! the numbers that are kept; all others become values. What contexts hold is contents and never decides
//! whether the body can be read: an element that is no finite number (`1e999`, an integer of 400 digits, `null`,
//! `NaN`, text, an object) is not finite in the result, and an invalid value of its own round. How lists are
//! nested is structure. A number is the double nearest to its text, rounded once more where single precision
//! is kept.

use std::borrow::Cow;

use crate::matrix::scalar::Real;

/// Lists in lists at most: rounds of arms of columns.
const DEEPEST: usize = 3;
/// Values in values at most, anywhere in a body.
const DEEPEST_VALUE: usize = 64;
/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// Integers up to here are doubles.
const EXACT: u64 = 1 << 53;
/// So many digits fit 64 bits, whatever they are, with a sign.
const MOST_DIGITS: usize = 18;

/// Why a body can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is no JSON, or nested too deeply.
    Malformed,
    /// It is JSON, and no object whose members have different names.
    NoRecord,
    /// A list has more values than it may have.
    Many,
    /// `contexts` are not nested lists of equal lengths, the innermost of `dim` elements.
    Shape,
}

/// Any value of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits with a sign.
    Integer(i64),
    /// Any other number; infinite if no double is near.
    Number(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Value<'a>>),
    /// An object. What it holds is no concern of ours.
    Object,
}

/// Nested lists of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Contexts<T> {
    /// All numbers, one after the other; not finite where there was none.
    pub values: Vec<T>,
    /// How many lists there are at each depth, outermost first; last, how many numbers in each.
    pub shape: Vec<usize>,
}

/// What a body says.
#[derive(Debug, Clone, PartialEq)]
pub struct Body<'a, T> {
    /// Its contexts, if it has any.
    pub contexts: Option<Contexts<T>>,
    /// All other members.
    pub members: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// Read a body; the innermost lists of its contexts have `dim` numbers, and lists that are values at most `most`.
pub fn read<T: Real>(text: &[u8], dim: usize, most: usize) -> Result<Body<'_, T>, Fault> {
    let mut reader = Reader { text, at: 0, most };
    if reader.skip_spaces()? != b'{' {
        reader.value(DEEPEST_VALUE)?;
        return Err(if reader.ends() { Fault::NoRecord } else { Fault::Malformed });
    }
    reader.at += 1;
    let mut body = Body { contexts: None, members: Vec::new() };
    if reader.skip_spaces()? == b'}' {
        reader.at += 1;
    } else {
        loop {
            let name = reader.string()?;
            reader.expect(b':')?;
            if body.members.iter().any(|(other, _)| *other == name)
                || (name == "contexts" && body.contexts.is_some())
            {
                return Err(Fault::NoRecord);
            }
            if name == "contexts" {
                body.contexts = Some(reader.contexts::<T>(dim)?);
            } else {
                let value = reader.value(DEEPEST_VALUE)?;
                body.members.push((name, value));
            }
            match reader.token()? {
                b',' => {}
                b'}' => break,
                _ => return Err(Fault::Malformed),
            }
        }
    }
    if reader.ends() { Ok(body) } else { Err(Fault::Malformed) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// Values of a list at most.
    most: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Result<u8, Fault> {
        self.text.get(self.at).copied().ok_or(Fault::Malformed)
    }

    /// The next byte that is no space, which stays.
    fn skip_spaces(&mut self) -> Result<u8, Fault> {
        while let Some(&byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Fault::Malformed)
    }

    /// Whether nothing but spaces is left.
    fn ends(&mut self) -> bool {
        self.skip_spaces().is_err()
    }

    /// Take the next byte that is no space.
    fn token(&mut self) -> Result<u8, Fault> {
        let byte = self.skip_spaces()?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Fault> {
        if self.token()? == wanted { Ok(()) } else { Err(Fault::Malformed) }
    }

    fn word(&mut self, wanted: &[u8]) -> Result<(), Fault> {
        let found = self.text[self.at..].starts_with(wanted);
        self.at += wanted.len();
        if found { Ok(()) } else { Err(Fault::Malformed) }
    }

    /// Text in quotes; borrowed, if nothing in it is escaped.
    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.expect(b'"')?;
        let start = self.at;
        let mut written: Option<Vec<u8>> = None;
        loop {
            match self.peek()? {
                b'"' => {
                    let raw = &self.text[start..self.at];
                    self.at += 1;
                    return match written {
                        None => std::str::from_utf8(raw).map(Cow::Borrowed).map_err(|_| Fault::Malformed),
                        Some(all) => String::from_utf8(all).map(Cow::Owned).map_err(|_| Fault::Malformed),
                    };
                }
                b'\\' => {
                    let so_far = &self.text[start..self.at];
                    let mut all = written.take().unwrap_or_else(|| so_far.to_vec());
                    self.at += 1;
                    let letter = self.escaped()?;
                    all.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    written = Some(all);
                }
                0..=0x1f => return Err(Fault::Malformed),
                byte => {
                    if let Some(all) = &mut written {
                        all.push(byte);
                    }
                    self.at += 1;
                }
            }
        }
    }

    /// What stands behind a backslash. Half of a pair of surrogates is no letter.
    fn escaped(&mut self) -> Result<char, Fault> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits()?;
                let code = if (0xd800..0xdc00).contains(&first) {
                    self.word(b"\\u")?;
                    let second = self.four_digits()?;
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(Fault::Malformed);
                    }
                    0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                } else {
                    first
                };
                char::from_u32(code).ok_or(Fault::Malformed)?
            }
            _ => return Err(Fault::Malformed),
        })
    }

    fn four_digits(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Fault::Malformed)?;
        self.at += 4;
        digits.iter().try_fold(0, |sum, &digit| {
            char::from(digit).to_digit(16).map(|value| 16 * sum + value).ok_or(Fault::Malformed)
        })
    }

    /// Any value, with at most `levels` of lists and objects in it.
    fn value(&mut self, levels: usize) -> Result<Value<'a>, Fault> {
        let inside = levels.checked_sub(1).ok_or(Fault::Malformed);
        Ok(match self.skip_spaces()? {
            b'"' => Value::Text(self.string()?),
            b'[' => {
                let (levels, mut all) = (inside?, Vec::new());
                self.at += 1;
                if self.skip_spaces()? == b']' {
                    self.at += 1;
                    return Ok(Value::List(all));
                }
                loop {
                    if all.len() == self.most {
                        return Err(Fault::Many);
                    }
                    all.push(self.value(levels)?);
                    match self.token()? {
                        b',' => {}
                        b']' => break Value::List(all),
                        _ => return Err(Fault::Malformed),
                    }
                }
            }
            b'{' => {
                let levels = inside?;
                self.at += 1;
                if self.skip_spaces()? == b'}' {
                    self.at += 1;
                    return Ok(Value::Object);
                }
                loop {
                    self.string()?;
                    self.expect(b':')?;
                    self.value(levels)?;
                    match self.token()? {
                        b',' => {}
                        b'}' => break Value::Object,
                        _ => return Err(Fault::Malformed),
                    }
                }
            }
            b'n' => self.word(b"null").map(|()| Value::Null)?,
            b't' => self.word(b"true").map(|()| Value::Bool(true))?,
            b'f' => self.word(b"false").map(|()| Value::Bool(false))?,
            b'N' => self.word(b"NaN").map(|()| Value::Number(f64::NAN))?,
            b'I' => self.word(b"Infinity").map(|()| Value::Number(f64::INFINITY))?,
            b'-' if self.text.get(self.at + 1) == Some(&b'I') => {
                self.word(b"-Infinity").map(|()| Value::Number(f64::NEG_INFINITY))?
            }
            _ => {
                let number = self.number()?;
                match number.integer() {
                    Some(integer) => Value::Integer(integer),
                    None => Value::Number(number.value()),
                }
            }
        })
    }

    /// Nested lists of equal lengths, the innermost of `dim` elements.
    fn contexts<T: Real>(&mut self, dim: usize) -> Result<Contexts<T>, Fault> {
        let mut values = Vec::with_capacity((self.text.len() - self.at) / 8);
        let mut depth = 0;
        while self.skip_spaces()? == b'[' {
            self.at += 1;
            depth += 1;
            if depth > DEEPEST {
                return Err(Fault::Shape);
            }
        }
        if depth == 0 {
            self.value(DEEPEST_VALUE)?;
            return Err(Fault::Shape);
        }
        // How many there are in the list that is open at each depth, and in the first one that was closed.
        let (mut open, mut shape) = ([0usize; DEEPEST], [0usize; DEEPEST]);
        shape[depth - 1] = dim;
        loop {
            for _ in 0..dim {
                if open[depth - 1] > 0 {
                    match self.token()? {
                        b',' => {}
                        b']' => return Err(Fault::Shape),
                        _ => return Err(Fault::Malformed),
                    }
                    self.skip_spaces()?;
                }
                values.push(T::from_f64(self.element()?));
                open[depth - 1] += 1;
            }
            // Close lists, then open as many as were closed.
            let mut level = depth;
            loop {
                match self.token()? {
                    b']' => {}
                    b',' => return Err(Fault::Shape),
                    _ => return Err(Fault::Malformed),
                }
                level -= 1;
                if shape[level] == 0 {
                    shape[level] = open[level];
                } else if shape[level] != open[level] {
                    return Err(Fault::Shape);
                }
                open[level] = 0;
                if level == 0 {
                    return Ok(Contexts { values, shape: shape[..depth].to_vec() });
                }
                open[level - 1] += 1;
                if self.skip_spaces()? == b',' {
                    self.at += 1;
                    break;
                }
            }
            for _ in level..depth {
                match self.skip_spaces()? {
                    b'[' => self.at += 1,
                    b']' | b',' => return Err(Fault::Malformed),
                    _ => return Err(Fault::Shape),
                }
            }
            self.skip_spaces()?;
        }
    }

    /// One element of an innermost list: its number, or what is not finite in place of anything else.
    #[inline]
    fn element(&mut self) -> Result<f64, Fault> {
        match self.peek()? {
            b'0'..=b'9' => Ok(self.number()?.value()),
            b'-' if self.text.get(self.at + 1) != Some(&b'I') => Ok(self.number()?.value()),
            b'[' | b']' => Err(Fault::Shape),
            _ => match self.value(DEEPEST_VALUE)? {
                Value::Number(number) => Ok(number),
                _ => Ok(f64::NAN),
            },
        }
    }

    /// A number in JSON's own grammar, at the next byte.
    fn number(&mut self) -> Result<Number<'a>, Fault> {
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
        let next = self.text.get(self.at).copied();
        if next == Some(b'.') {
            self.at += 1;
            let places = self.digits(&mut number.mantissa)?;
            number.whole = false;
            number.digits += places;
            number.exponent = -i64::try_from(places).map_err(|_| Fault::Malformed)?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            number.whole = false;
            let below = self.peek()? == b'-';
            self.at += usize::from(below || self.peek()? == b'+');
            let mut power = 0;
            let huge = self.digits(&mut power)? > MOST_DIGITS;
            // Far beyond every double, and read as text.
            let power = if huge { 1 << 40 } else { power.min(1 << 40) as i64 };
            number.exponent += if below { -power } else { power };
        }
        number.text = &self.text[start..self.at];
        Ok(number)
    }

    /// One digit or more: how many, and what they add to a number. More than fit it are counted all the same.
    fn digits(&mut self, value: &mut u64) -> Result<usize, Fault> {
        let start = self.at;
        while let Some(byte @ b'0'..=b'9') = self.text.get(self.at) {
            *value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        if self.at > start { Ok(self.at - start) } else { Err(Fault::Malformed) }
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
    exponent: i64,
}

impl Number<'_> {
    /// The integer that this is, if it is one of 64 bits.
    fn integer(&self) -> Option<i64> {
        if !self.whole {
            return None;
        }
        if self.digits <= MOST_DIGITS {
            let size = self.mantissa as i64;
            return Some(if self.negative { -size } else { size });
        }
        std::str::from_utf8(self.text).ok()?.parse().ok()
    }

    /// The nearest double; infinite if there is none.
    fn value(&self) -> f64 {
        let power = self.exponent.unsigned_abs() as usize;
        if self.digits <= MOST_DIGITS && self.mantissa <= EXACT && power < POWERS.len() {
            // Both numbers are exact, so that one operation rounds once.
            let size = self.mantissa as f64;
            let size = if self.exponent < 0 { size / POWERS[power] } else { size * POWERS[power] };
            // An integer has no zero below zero.
            return if self.negative && !(self.whole && self.mantissa == 0) { -size } else { size };
        }
        std::str::from_utf8(self.text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str, dim: usize) -> Result<Body<'_, f64>, Fault> {
        read::<f64>(text.as_bytes(), dim, 100)
    }

    fn contexts(text: &str, dim: usize) -> Result<Contexts<f64>, Fault> {
        body(&format!("{{\"contexts\":{text}}}"), dim).map(|found| found.contexts.expect("contexts"))
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
            "1234567890123456789012345",
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
            "0e99999",
            "1e-99999999999999999999999",
        ] {
            let expected: f64 = text.parse().expect("a number");
            let found = contexts(&format!("[{text}]"), 1).unwrap_or_else(|_| panic!("{text}")).values[0];
            assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
        }
        assert_eq!(contexts("[-0]", 1).expect("a zero").values[0].to_bits(), 0);
    }

    #[test]
    fn single_precision_is_rounded_from_the_double() {
        // Half way between two floats as a double, and a little above it as text.
        let half = b"{\"contexts\":[1.00000005960464477539062500001]}";
        let large = b"{\"contexts\":[1e39]}";
        for (text, expected) in [(half.as_slice(), 1.0f32), (large.as_slice(), f32::INFINITY)] {
            assert_eq!(read::<f32>(text, 1, 1).expect("a body").contexts.expect("one").values, [expected]);
        }
    }

    #[test]
    fn what_is_no_finite_number_is_an_element_all_the_same() {
        let long = "9".repeat(400);
        for text in [
            "1e999",
            "-1e999",
            "1e99999",
            &long,
            "null",
            "true",
            "NaN",
            "Infinity",
            "-Infinity",
            "\"a\"",
            "{}",
            "{\"a\":[1,{}]}",
        ] {
            let found = contexts(&format!("[[1,2],[{text},4]]"), 2).unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(found.shape, [2, 2]);
            assert!(!found.values[2].is_finite(), "{text}");
            assert_eq!([found.values[0], found.values[1], found.values[3]], [1.0, 2.0, 4.0]);
        }
    }

    #[test]
    fn shapes_are_those_of_equal_lists() {
        assert_eq!(contexts("[1,2]", 2), Ok(Contexts { values: vec![1.0, 2.0], shape: vec![2] }));
        assert_eq!(contexts(" [ [1 , 2] , [3,4],[5,6] ] ", 2).expect("lists").shape, [3, 2]);
        assert_eq!(contexts("[[[1],[2]],[[3],[4]],[[5],[6]]]", 1).expect("lists").shape, [3, 2, 1]);
        for text in [
            "1",
            "\"a\"",
            "[]",
            "[[]]",
            "[[1,2],[3]]",
            "[[1,2],3]",
            "[1,[2]]",
            "[[[1,2]],[[1,2],[3,4]]]",
            "[[1,2],[[3,4]]]",
            "[[[[1,2]]]]",
            "[1,2,3]",
        ] {
            assert_eq!(contexts(text, 2), Err(Fault::Shape), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_malformed() {
        for text in [
            "",
            "{",
            "{\"contexts\":[1]",
            "{\"contexts\":[1]}x",
            "{\"contexts\":[1],}",
            "{\"contexts\":[01]}",
            "{\"contexts\":[1.]}",
            "{\"contexts\":[.5]}",
            "{\"contexts\":[+1]}",
            "{\"contexts\":[1e]}",
            "{\"contexts\":[-]}",
            "{\"contexts\":[nul]}",
            "{\"contexts\":[1 2]}",
            "{\"contexts\":[,1]}",
            "{\"contexts\":[[1],]}",
            "{\"key\":\"\n\"}",
            "{\"key\":\"\\ud800\"}",
            "{\"key\":\"\\x\"}",
            "{contexts:[1]}",
            "{\"a\":[1,]}",
            &"[".repeat(9000),
            &format!("{{\"a\":{}1{}}}", "[".repeat(65), "]".repeat(65)),
        ] {
            assert_eq!(body(text, 1), Err(Fault::Malformed), "{text}");
        }
        assert_eq!(read::<f32>(b"{\"key\":\"\xff\"}", 1, 1), Err(Fault::Malformed));
        for text in ["[]", "null", "1", "{\"a\":1,\"a\":2}", "{\"contexts\":[1],\"contexts\":[1]}"] {
            assert_eq!(body(text, 1), Err(Fault::NoRecord), "{text}");
        }
        assert_eq!(read::<f32>(b"{\"ids\":[1,2,3]}", 1, 2), Err(Fault::Many));
    }

    #[test]
    fn members_are_values() {
        let text = "{\"key\": \"ö \\u00f6\\ud83d\\ude00\\n\", \"contexts\": [1], \"user\": -12, \"x\": [true, 1.5, {}], \
                    \"most\": 9223372036854775807, \"more\": 9223372036854775808}";
        let found = body(text, 1).expect("a body");
        assert_eq!(found.contexts.expect("contexts").values, [1.0]);
        let values: Vec<_> = found.members.into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            values,
            [
                Value::Text("ö ö😀\n".into()),
                Value::Integer(-12),
                Value::List(vec![Value::Bool(true), Value::Number(1.5), Value::Object]),
                Value::Integer(i64::MAX),
                Value::Number(9_223_372_036_854_775_808.0),
            ]
        );
        assert_eq!(body("{}", 1).expect("nothing"), Body { contexts: None, members: vec![] });
    }
}
