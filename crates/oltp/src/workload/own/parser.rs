//! From the text of an expression to the expression.

use std::sync::Arc;

use super::expression::{Expression, Function, Trouble};
use super::value::Value;

/// What names in an expression stand for.
pub trait Names {
    /// A value by its name.
    fn value(&self, name: &str) -> Option<Expression>;
    /// The place of a number of a sequence: the next one, or the newest so far.
    ///
    /// # Errors
    /// No such sequence, or too many numbers for one transaction.
    fn number(&self, sequence: &str, takes: bool) -> Result<usize, Trouble>;
    /// The lines of a file.
    ///
    /// # Errors
    /// A file that is missing or empty.
    fn lines(&self, file: &str) -> Result<Arc<Vec<Value>>, Trouble>;
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Value(Value),
    /// With or without a colon before it.
    Name(String),
    Sign(char),
}

/// Parses an expression.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str, names: &dyn Names) -> Result<Expression, Trouble> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, names };
    let expression = parser.sum()?;
    match parser.tokens.first() {
        None => Ok(expression),
        Some(token) => Err(format!("{} is not expected", shown(token))),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Value(value) => value.to_string(),
        Token::Name(name) => format!("'{name}'"),
        Token::Sign(sign) => format!("'{sign}'"),
    }
}

/// Whether a character may stand in a name.
pub fn is_of_a_name(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn tokens(text: &str) -> Result<Vec<Token>, Trouble> {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            ' ' | '\t' => 1,
            '\'' => {
                let end = rest[1..].find('\'').ok_or("a text without its end")?;
                tokens.push(Token::Value(Value::Text(rest[1..=end].to_owned())));
                end + 2
            }
            '0'..='9' | '.' => {
                let end = number_end(rest);
                tokens.push(Token::Value(number(&rest[..end])?));
                end
            }
            ':' => {
                let name: String = rest[1..].chars().take_while(|c| is_of_a_name(*c)).collect();
                if name.is_empty() {
                    return Err("a name must follow ':'".to_owned());
                }
                let taken = 1 + name.len();
                tokens.push(Token::Name(name));
                taken
            }
            '+' | '-' | '*' | '/' | '%' | '(' | ')' | ',' => {
                tokens.push(Token::Sign(first));
                1
            }
            letter if is_of_a_name(letter) => {
                let name: String = rest.chars().take_while(|c| is_of_a_name(*c)).collect();
                let taken = name.len();
                tokens.push(Token::Name(name));
                taken
            }
            other => return Err(format!("'{other}' is not part of the language")),
        };
        rest = &rest[taken..];
    }
    Ok(tokens)
}

fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let sign = matches!(byte, b'+' | b'-') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'_') || sign) {
            break;
        }
        end += 1;
    }
    end
}

fn number(text: &str) -> Result<Value, Trouble> {
    let plain = text.replace('_', "");
    plain
        .parse()
        .map(Value::Int)
        .or_else(|_| plain.parse().map(Value::Real).map_err(|_| format!("{text} is no number")))
}

struct Parser<'a> {
    tokens: &'a [Token],
    names: &'a dyn Names,
}

impl Parser<'_> {
    fn take(&mut self, sign: char) -> bool {
        let here = self.tokens.first() == Some(&Token::Sign(sign));
        if here {
            self.tokens = &self.tokens[1..];
        }
        here
    }

    fn sum(&mut self) -> Result<Expression, Trouble> {
        let mut left = self.product()?;
        loop {
            let function = if self.take('+') {
                Function::Add
            } else if self.take('-') {
                Function::Subtract
            } else {
                return Ok(left);
            };
            left = Expression::Call(function, vec![left, self.product()?]).folded()?;
        }
    }

    fn product(&mut self) -> Result<Expression, Trouble> {
        let mut left = self.factor()?;
        loop {
            let function = if self.take('*') {
                Function::Multiply
            } else if self.take('/') {
                Function::Divide
            } else if self.take('%') {
                Function::Modulo
            } else {
                return Ok(left);
            };
            left = Expression::Call(function, vec![left, self.factor()?]).folded()?;
        }
    }

    fn factor(&mut self) -> Result<Expression, Trouble> {
        if self.take('-') {
            return Expression::Call(Function::Negate, vec![self.factor()?]).folded();
        }
        if self.take('(') {
            let inner = self.sum()?;
            return if self.take(')') { Ok(inner) } else { Err("a ')' is missing".to_owned()) };
        }
        let (first, rest) = self.tokens.split_first().ok_or("a value is missing")?;
        self.tokens = rest;
        match first {
            Token::Value(value) => Ok(Expression::Constant(value.clone())),
            Token::Name(name) if self.take('(') => self.call(name),
            Token::Name(name) => {
                self.names.value(name).ok_or_else(|| format!("nothing is called '{name}'"))
            }
            Token::Sign(sign) => Err(format!("'{sign}' where a value is expected")),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression, Trouble> {
        let mut arguments = Vec::new();
        while !self.take(')') {
            if !arguments.is_empty() && !self.take(',') {
                return Err(format!("a ',' or ')' is missing in {name}(...)"));
            }
            arguments.push(self.sum()?);
        }
        self.function(name, arguments)
    }

    fn function(&self, name: &str, list: Vec<Expression>) -> Result<Expression, Trouble> {
        use Function as F;
        let (function, wanted) = match name {
            "abs" => (F::Abs, 1..=1),
            "sqrt" => (F::Sqrt, 1..=1),
            "ln" => (F::Ln, 1..=1),
            "exp" => (F::Exp, 1..=1),
            "int" => (F::Int, 1..=1),
            "double" => (F::Double, 1..=1),
            "mod" => (F::Modulo, 2..=2),
            "greatest" => (F::Greatest, 2..=64),
            "least" => (F::Least, 2..=64),
            "random" => (F::Random, 2..=2),
            "random_gaussian" => (F::Gaussian, 3..=3),
            "random_exponential" => (F::Exponential, 3..=3),
            "random_zipfian" | "zipf" => (F::Zipf, 3..=3),
            "scattered_zipf" => (F::ScatteredZipf, 3..=3),
            "nurand" => (F::NuRand, 4..=4),
            _ => return self.special(name, list),
        };
        if !wanted.contains(&list.len()) {
            let (low, high) = (wanted.start(), wanted.end());
            let wanted = if low == high { low.to_string() } else { format!("at least {low}") };
            return Err(format!("{name} takes {wanted} values, not {}", list.len()));
        }
        Expression::Call(function, list).folded()
    }

    /// Functions of names, files and positions.
    fn special(&self, name: &str, list: Vec<Expression>) -> Result<Expression, Trouble> {
        let constants: Vec<Option<&Value>> = list
            .iter()
            .map(|argument| match argument {
                Expression::Constant(value) => Some(value),
                _ => None,
            })
            .collect();
        let numbers: Vec<Option<f64>> =
            constants.iter().map(|value| value.and_then(Value::number)).collect();
        match (name, &constants[..], &numbers[..]) {
            ("row", [], _) => Ok(Expression::Row),
            ("terminal", [], _) => Ok(Expression::Terminal),
            ("now", [], _) => Ok(Expression::Now),
            ("pi", [], _) => Ok(Expression::Constant(Value::Real(std::f64::consts::PI))),
            ("choice", [_, ..], _) => Ok(Expression::Choice(list)),
            ("line", [Some(Value::Text(file))], _) => Ok(Expression::Line(self.names.lines(file)?)),
            ("next", [Some(Value::Text(sequence))], _) => {
                Ok(Expression::Number(self.names.number(sequence, true)?))
            }
            ("newest", [Some(Value::Text(sequence))], _) => {
                Ok(Expression::Number(self.names.number(sequence, false)?))
            }
            ("latest", [Some(Value::Text(sequence)), _], [_, Some(exponent)])
                if (0.0..=1000.0).contains(exponent) =>
            {
                Ok(Expression::Latest(self.names.number(sequence, false)?, *exponent))
            }
            ("text", _, [Some(low), Some(high)])
                if *low >= 0.0 && low <= high && *high <= 65_536.0 =>
            {
                Ok(Expression::Letters(*low as i64, *high as i64))
            }
            ("decimal", _, [Some(low), Some(high), Some(places)])
                if low <= high && (0.0..=9.0).contains(places) && high.abs().max(-low) < 1e9 =>
            {
                Ok(Expression::Decimal(*low, *high, *places as u32))
            }
            ("row" | "terminal" | "now" | "pi", ..) => Err(format!("{name}() takes no values")),
            ("choice", ..) => Err("choice(a, b, ...) takes one value at least".to_owned()),
            ("line", ..) => Err("line('FILE') takes the name of a file".to_owned()),
            ("next" | "newest", ..) => Err(format!("{name}('SEQUENCE') takes a name")),
            ("latest", ..) => Err("latest('SEQUENCE', EXPONENT) takes a name and a number".into()),
            ("text", ..) => Err("text(LOW, HIGH) takes two lengths up to 65536".to_owned()),
            ("decimal", ..) => {
                Err("decimal(LOW, HIGH, PLACES) takes bounds below 10^9 and 0 to 9 places".into())
            }
            _ => Err(format!("there is no function '{name}'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use stats::rng::Rng;

    use super::super::expression::Given;
    use super::*;

    struct Known;

    impl Names for Known {
        fn value(&self, name: &str) -> Option<Expression> {
            match name {
                "rows" => Some(Expression::Constant(Value::Int(1000))),
                "x" => Some(Expression::Slot(0)),
                _ => None,
            }
        }
        fn number(&self, sequence: &str, _: bool) -> Result<usize, Trouble> {
            if sequence == "key" { Ok(0) } else { Err(format!("no sequence '{sequence}'")) }
        }
        fn lines(&self, file: &str) -> Result<Arc<Vec<Value>>, Trouble> {
            Err(format!("'{file}' is missing"))
        }
    }

    fn value(text: &str) -> Result<String, Trouble> {
        let slots = [Value::Text("7".to_owned())];
        let mut given = Given {
            rng: &mut Rng::new(1),
            slots: &slots,
            numbers: &[41],
            row: 3,
            terminal: 2,
            now_ms: 9,
        };
        parse(text, &Known)?.value(&mut given).map(|value| value.to_string())
    }

    #[test]
    fn arithmetic_is_that_of_pgbench() {
        for (text, expected) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3 - -4", "13"),
            ("7 / 2", "3"),
            ("7 / 2.0", "3.5"),
            ("-7 % 3", "-1"),
            ("1_000 * 2", "2000"),
            ("1e3", "1000"),
            ("2 - 1 - 1", "0"),
            ("greatest(1, 5, 3) + least(4, 2)", "7"),
            ("int(7.9) + abs(-2)", "9"),
            (":x * 2", "14"),
            (":rows / 10 + row() + terminal() + now()", "114"),
            ("next('key')", "41"),
            ("'a b'", "'a b'"),
            ("random(rows, rows)", "1000"),
            ("random(:x, 7)", "7"),
            ("choice('a')", "'a'"),
            ("decimal(1.25, 1.25, 2)", "1.25"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "a value is missing"),
            ("1 +", "a value is missing"),
            ("1 2", "2 is not expected"),
            ("(1", "a ')' is missing"),
            ("y", "nothing is called 'y'"),
            ("permute(1, 2)", "there is no function 'permute'"),
            ("random(1)", "random takes 2 values, not 1"),
            ("random(2, 1)", "no integer lies from 2 to 1"),
            ("1 / 0", "division by zero"),
            ("1 / (:x - 7)", "division by zero"),
            ("9223372036854775807 + 1", "more than 64 bits"),
            ("'a' * 2", "'a' is no number"),
            ("'a", "a text without its end"),
            ("a ? b", "'?' is not part"),
            ("next(1)", "takes a name"),
            ("next('keys')", "no sequence 'keys'"),
            ("line('a.txt')", "'a.txt' is missing"),
        ] {
            let found = value(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
