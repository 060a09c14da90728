//! Expressions that make parameters and columns: arithmetic and random draws.
//!
//! Their language is that of pgbench's `\set` (PostgreSQL manual, page of pgbench) with a few more
//! functions. An expression is parsed once; its value is a function of the random numbers and of
//! the other values that it names, nothing else. Draws with constant bounds are prepared when they
//! are parsed. [`super::distribution`] has the distributions and their exact probabilities.

use std::sync::Arc;

use stats::rng::Rng;

use super::distribution::Distribution;
use super::value::{Holds, Value};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Constant(Value),
    /// Another value, by its place.
    Slot(usize),
    /// Number of the row, from 1 (loaders only).
    Row,
    /// Number of the terminal, from 0.
    Terminal,
    /// Milliseconds since 1970.
    Now,
    /// The n-th number that the run's sequences gave the transaction.
    Number(usize),
    /// A number below the n-th, the near ones more often: Zipf with this exponent.
    Latest(usize, f64),
    /// A draw whose bounds are constants.
    Draw(Distribution),
    /// One of a list, with equal chances.
    Choice(Vec<Self>),
    /// One line of a file, with equal chances.
    Line(Arc<Vec<Value>>),
    /// Letters, as many as a draw between two numbers says.
    Letters(i64, i64),
    /// A number between two, with this many decimal places.
    Decimal(f64, f64, u32),
    /// A function of values.
    Call(Function, Vec<Self>),
}

/// What an expression can do with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `-a`
    Negate,
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`, cut where both are integers
    Divide,
    /// `a % b`
    Modulo,
    /// `abs(a)`
    Abs,
    /// `sqrt(a)`
    Sqrt,
    /// `ln(a)`
    Ln,
    /// `exp(a)`
    Exp,
    /// `int(a)`
    Int,
    /// `double(a)`
    Double,
    /// `greatest(a, ...)`
    Greatest,
    /// `least(a, ...)`
    Least,
    /// `random(low, high)`
    Random,
    /// `random_gaussian(low, high, parameter)`
    Gaussian,
    /// `random_exponential(low, high, parameter)`
    Exponential,
    /// `random_zipfian(low, high, exponent)`, `zipf(...)`
    Zipf,
    /// `scattered_zipf(low, high, exponent)`
    ScatteredZipf,
    /// `nurand(a, low, high, c)`
    NuRand,
}

/// What an expression's value depends on.
pub struct Given<'a> {
    /// Where random numbers come from.
    pub rng: &'a mut Rng,
    /// The other values.
    pub slots: &'a [Value],
    /// Numbers of sequences.
    pub numbers: &'a [i64],
    /// Number of the row, from 1.
    pub row: i64,
    /// Number of the terminal, from 0.
    pub terminal: u32,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// Why an expression has no value.
pub type Trouble = String;

impl Expression {
    /// The value.
    ///
    /// # Errors
    /// A range without numbers, a division by zero, text where a number is needed.
    pub fn value(&self, given: &mut Given<'_>) -> Result<Value, Trouble> {
        Ok(match self {
            Self::Constant(value) => value.clone(),
            Self::Slot(slot) => given.slots[*slot].clone(),
            Self::Row => Value::Int(given.row),
            Self::Terminal => Value::Int(i64::from(given.terminal)),
            Self::Now => Value::Int(given.now_ms),
            Self::Number(at) => Value::Int(given.numbers[*at]),
            Self::Latest(at, exponent) => {
                let newest = given.numbers[*at].max(1);
                let back = stats::zipf::Zipf::new(newest as u64, *exponent).sample(given.rng);
                Value::Int(newest - back as i64)
            }
            Self::Draw(distribution) => Value::Int(distribution.draw(given.rng)),
            Self::Choice(list) => {
                let at = given.rng.below(list.len() as u64) as usize;
                list[at].value(given)?
            }
            Self::Line(lines) => lines[given.rng.below(lines.len() as u64) as usize].clone(),
            Self::Letters(low, high) => {
                let length = given.rng.between(*low as u64, *high as u64);
                let letter = |_| char::from(b'a' + given.rng.below(26) as u8);
                Value::Text((0..length).map(letter).collect())
            }
            Self::Decimal(low, high, places) => {
                let unit = 10f64.powi(*places as i32);
                let (low, high) = ((low * unit).round() as i64, (high * unit).round() as i64);
                let drawn = low + given.rng.below((high - low + 1) as u64) as i64;
                Value::Real(drawn as f64 / unit)
            }
            Self::Call(function, arguments) => match &arguments[..] {
                [one] => function.of_one(&one.value(given)?)?,
                [left, right] if function.is_arithmetic() => {
                    function.of_two(&left.value(given)?, &right.value(given)?)?
                }
                all => {
                    let all: Result<Vec<_>, _> = all.iter().map(|one| one.value(given)).collect();
                    function.of_many(&all?, given.rng)?
                }
            },
        })
    }

    /// What its value will be.
    pub fn holds(&self, slots: &[Holds]) -> Holds {
        use Function::{Double, Exp, Int, Ln, Sqrt};
        let of = |list: &[Self]| {
            let all = list.iter().map(|one| one.holds(slots));
            all.reduce(|a, b| if a == b { a } else { wider(a, b) }).unwrap_or(Holds::Text)
        };
        match self {
            Self::Row | Self::Terminal | Self::Now | Self::Number(_) | Self::Latest(..) => {
                Holds::Int
            }
            Self::Constant(Value::Int(_)) | Self::Draw(_) | Self::Call(Int, _) => Holds::Int,
            Self::Constant(Value::Real(_))
            | Self::Decimal(..)
            | Self::Call(Sqrt | Ln | Exp | Double, _) => Holds::Real,
            Self::Constant(Value::Text(_) | Value::Null) | Self::Letters(..) => Holds::Text,
            Self::Slot(slot) => slots[*slot],
            Self::Line(lines) => {
                let whole = lines.iter().all(|line| matches!(line, Value::Int(_)));
                if whole { Holds::Int } else { Holds::Text }
            }
            Self::Choice(list) => of(list),
            Self::Call(function, _) if function.draws() => Holds::Int,
            Self::Call(_, list) => match of(list) {
                // What a statement returned is taken for the number that it must be here.
                Holds::Text => Holds::Real,
                holds => holds,
            },
        }
    }

    /// Calls `each` with every part.
    pub fn walk(&self, each: &mut dyn FnMut(&Self)) {
        each(self);
        if let Self::Call(_, list) | Self::Choice(list) = self {
            for part in list {
                part.walk(each);
            }
        }
    }

    /// As it is, or the constant that it always is.
    pub fn folded(self) -> Result<Self, Trouble> {
        let Self::Call(function, list) = &self else { return Ok(self) };
        let constant = |part: &Self| match part {
            Self::Constant(value) => Some(value.clone()),
            _ => None,
        };
        let Some(values) = list.iter().map(constant).collect::<Option<Vec<_>>>() else {
            return Ok(self);
        };
        if function.draws() {
            return Ok(Self::Draw(function.distribution(&values)?));
        }
        Ok(Self::Constant(match &values[..] {
            [one] => function.of_one(one)?,
            [left, right] if function.is_arithmetic() => function.of_two(left, right)?,
            all => function.of_many(all, &mut Rng::new(0))?,
        }))
    }
}

fn wider(a: Holds, b: Holds) -> Holds {
    if a == Holds::Text || b == Holds::Text { Holds::Text } else { Holds::Real }
}

fn number(value: &Value) -> Result<f64, Trouble> {
    value.number().ok_or_else(|| format!("{value} is no number"))
}

fn integer(value: &Value) -> Result<i64, Trouble> {
    value.integer().ok_or_else(|| format!("{value} is no integer"))
}

impl Function {
    fn is_arithmetic(self) -> bool {
        use Function::{Add, Divide, Modulo, Multiply, Subtract};
        matches!(self, Add | Subtract | Multiply | Divide | Modulo)
    }

    /// Whether its value is random.
    pub fn draws(self) -> bool {
        use Function::{Exponential, Gaussian, NuRand, Random, ScatteredZipf, Zipf};
        matches!(self, Random | Gaussian | Exponential | Zipf | ScatteredZipf | NuRand)
    }

    fn of_one(self, value: &Value) -> Result<Value, Trouble> {
        let real = |of: fn(f64) -> f64| Ok(Value::Real(of(number(value)?)));
        match self {
            Self::Negate => match value {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
                other => Ok(Value::Real(-number(other)?)),
            },
            Self::Abs => match value {
                Value::Int(value) => value.checked_abs().map(Value::Int).ok_or_else(overflow),
                other => Ok(Value::Real(number(other)?.abs())),
            },
            Self::Sqrt => real(f64::sqrt),
            Self::Ln => real(f64::ln),
            Self::Exp => real(f64::exp),
            Self::Double => real(|value| value),
            Self::Int => Ok(Value::Int(integer(value)?)),
            _ => Ok(value.clone()),
        }
    }

    fn of_two(self, left: &Value, right: &Value) -> Result<Value, Trouble> {
        // Text that a statement returned stands for the number that it says.
        let whole = |value: &Value| !matches!(value, Value::Real(_)) && value.integer().is_some();
        if whole(left) && whole(right) {
            let (left, right) = (integer(left)?, integer(right)?);
            if right == 0 && matches!(self, Self::Divide | Self::Modulo) {
                return Err("division by zero".to_owned());
            }
            let value = match self {
                Self::Add => left.checked_add(right),
                Self::Subtract => left.checked_sub(right),
                Self::Multiply => left.checked_mul(right),
                Self::Divide => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            return value.map(Value::Int).ok_or_else(overflow);
        }
        let (left, right) = (number(left)?, number(right)?);
        if right == 0.0 && self == Self::Divide {
            return Err("division by zero".to_owned());
        }
        Ok(Value::Real(match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            _ => return Err("% of numbers with places".to_owned()),
        }))
    }

    fn of_many(self, values: &[Value], rng: &mut Rng) -> Result<Value, Trouble> {
        if self.draws() {
            return Ok(Value::Int(self.distribution(values)?.draw(rng)));
        }
        let mut best = &values[0];
        for value in &values[1..] {
            let less = number(value)? < number(best)?;
            if less == (self == Self::Least) {
                best = value;
            }
        }
        Ok(best.clone())
    }

    fn distribution(self, values: &[Value]) -> Result<Distribution, Trouble> {
        let (low, high) = (integer(&values[0])?, integer(&values[1])?);
        let third = || number(&values[2]);
        match self {
            Self::Random => Distribution::uniform(low, high),
            Self::Gaussian => Distribution::gaussian(low, high, third()?),
            Self::Exponential => Distribution::exponential(low, high, third()?),
            Self::Zipf => Distribution::zipf(low, high, third()?),
            Self::ScatteredZipf => Distribution::scattered_zipf(low, high, third()?),
            _ => {
                let (a, low, high) = (low, high, integer(&values[2])?);
                Distribution::nurand(a, low, high, integer(&values[3])?)
            }
        }
    }
}

fn overflow() -> Trouble {
    "an integer of more than 64 bits".to_owned()
}
