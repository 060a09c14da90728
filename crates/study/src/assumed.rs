//! How much of a profile is assumed, and what that may change.
//!
//! Every parameter of a profile is a table with a `value` and a `source`; one that nobody published
//! or measured says `assumed = true`. A result of such a profile is worth what its assumptions are
//! worth, so they are counted and swept: each is halved and doubled by itself, the others kept. The
//! factor is a convention: published figures of one class of devices lie about that far apart. A
//! measured value that states its standard error can be moved too, to the ends of its interval.

use toml::Value;

/// How far an assumed value is moved, either way.
pub const FACTOR: f64 = 2.0;

/// Of a normal distribution 90 % lies within so many standard deviations of its mean.
const NINETY_PERCENT: f64 = 1.645;

/// Most assumed values of one profile that are swept.
const SWEPT_MAX: usize = 40;

/// Parameters of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All parameters that state a source.
    pub all: u32,
    /// Those that are assumed.
    pub assumed: u32,
}

impl Count {
    /// The parameters of a profile's text; none where it is no TOML.
    pub fn of(text: &str) -> Self {
        let mut count = Self::default();
        if let Some(profile) = behaviour(text) {
            walk(&Value::Table(profile), &mut Vec::new(), &mut |_, _, assumed| {
                count.all += 1;
                count.assumed += u32::from(assumed);
            });
        }
        count
    }

    /// Whether most of what the profile says is assumed.
    pub fn mostly(self) -> bool {
        2 * self.assumed > self.all
    }
}

/// The profile without its price, its rated endurance and what others published of it, which no
/// transaction is slower for.
fn behaviour(text: &str) -> Option<toml::Table> {
    let mut profile = text.parse::<toml::Table>().ok()?;
    profile.remove("cost");
    profile.remove("endurance");
    profile.remove("published");
    Some(profile)
}

/// The profile with each assumed number halved, and doubled: two texts a number.
pub fn variants(text: &str) -> Vec<String> {
    let is_assumed = |_: &toml::Table, assumed: bool| assumed.then_some([1.0 / FACTOR, FACTOR]);
    moved(text, &is_assumed).into_iter().flatten().collect()
}

/// The profile with each number that is in doubt at the ends of its 90 % interval: the standard
/// error of a measured one, [`FACTOR`] either way of an assumed one. Two texts a number.
pub fn doubtful(text: &str) -> Vec<[String; 2]> {
    let ends = |table: &toml::Table, assumed: bool| {
        let number = |name: &str| {
            let value = table.get(name)?;
            value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
        };
        let (value, error) = (number("value")?, number("error").filter(|error| *error > 0.0));
        match error {
            Some(error) if value > 0.0 => {
                let share = NINETY_PERCENT * error / value;
                // What may be nothing is at least a hundredth of itself.
                Some([(1.0 - share).max(0.01), 1.0 + share])
            }
            _ => assumed.then_some([1.0 / FACTOR, FACTOR]),
        }
    };
    moved(text, &ends)
}

/// By which factors a parameter is to be moved down and up, if at all.
type Ends<'a> = &'a dyn Fn(&toml::Table, bool) -> Option<[f64; 2]>;

fn moved(text: &str, ends: Ends<'_>) -> Vec<[String; 2]> {
    let Some(profile) = behaviour(text) else { return Vec::new() };
    let profile = Value::Table(profile);
    let mut places = Vec::new();
    walk(&profile, &mut Vec::new(), &mut |path, table, assumed| {
        let is_number = table.get("value").is_some_and(|v| v.is_integer() || v.is_float());
        if let Some(factors) = ends(table, assumed).filter(|_| is_number) {
            places.push((path.to_vec(), factors));
        }
    });
    let text_at = |place: &[Key], factor| {
        let mut changed = profile.clone();
        let is_changed = scale(&mut changed, place, factor);
        is_changed.then(|| toml::to_string(&changed).ok()).flatten()
    };
    let pairs = places
        .iter()
        .take(SWEPT_MAX)
        .map(|(place, [low, high])| Some([text_at(place, *low)?, text_at(place, *high)?]));
    pairs.flatten().collect()
}

/// A key of a table, or a place in an array.
#[derive(Clone, Debug)]
enum Key {
    Name(String),
    Index(usize),
}

/// Called with the path, the table of a parameter, and whether it is assumed.
type Visit<'a> = dyn FnMut(&[Key], &toml::Table, bool) + 'a;

/// Visits every table that states a source: parameters, and tables of settings that state one for
/// all of them.
fn walk(value: &Value, path: &mut Vec<Key>, visit: &mut Visit<'_>) {
    match value {
        Value::Table(table) => {
            if table.get("source").is_some_and(Value::is_str) {
                let assumed = table.get("assumed").and_then(Value::as_bool).unwrap_or(false);
                visit(path, table, assumed);
            }
            for (name, inner) in table {
                path.push(Key::Name(name.clone()));
                walk(inner, path, visit);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                path.push(Key::Index(index));
                walk(inner, path, visit);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Multiplies the value of the parameter at a path; whole numbers stay whole.
fn scale(profile: &mut Value, path: &[Key], factor: f64) -> bool {
    let mut at = profile;
    for key in path {
        let next = match key {
            Key::Name(name) => at.get_mut(name.as_str()),
            Key::Index(index) => at.get_mut(*index),
        };
        let Some(next) = next else { return false };
        at = next;
    }
    match at.get_mut("value") {
        Some(Value::Float(value)) => *value *= factor,
        Some(Value::Integer(value)) => *value = ((*value as f64 * factor).round() as i64).max(1),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
[device]\nkind = 'linear'\nports = { value = 4, source = 'not published', assumed = true }\n\
rate = { value = 250.0, source = 'the maker' }\nlist = [{ value = 1, source = 'x' }]\n\
[device.queue]\nsource = 'a guess'\nassumed = true\ndepth = 32\n\
[cost]\nusd = { value = 9, source = 'a shop', assumed = true }\n";

    #[test]
    fn parameters_are_counted_with_what_is_assumed() {
        assert_eq!(Count::of(PROFILE), Count { all: 4, assumed: 2 });
        assert!(!Count::of(PROFILE).mostly());
        assert!(Count { all: 3, assumed: 2 }.mostly());
        assert_eq!(Count::of("no toml ["), Count::default());
    }

    #[test]
    fn each_assumed_number_is_halved_and_doubled() {
        let texts = variants(PROFILE);
        let ports = |text: &String| text.parse::<toml::Table>().unwrap()["device"]["ports"].clone();
        let values: Vec<i64> =
            texts.iter().map(|text| ports(text)["value"].as_integer().unwrap()).collect();
        assert_eq!(values, [2, 8]);
        assert!(texts.iter().all(|text| text.contains("250.0") && text.contains("depth = 32")));
    }

    #[test]
    fn measured_numbers_move_to_the_ends_of_their_intervals() {
        let text = PROFILE.replace("value = 250.0,", "value = 250.0, error = 20.0,");
        let rates: Vec<[f64; 2]> = doubtful(&text)
            .iter()
            .map(|ends| {
                let rate = |text: &String| {
                    text.parse::<toml::Table>().unwrap()["device"]["rate"]["value"]
                        .as_float()
                        .unwrap()
                };
                [rate(&ends[0]), rate(&ends[1])]
            })
            .collect();
        assert_eq!(rates.len(), 2, "the ports, which are assumed, and the rate");
        let ends = rates.iter().find(|ends| ends[0] < ends[1]).unwrap();
        assert!((ends[0] - 217.1).abs() < 1e-9 && (ends[1] - 282.9).abs() < 1e-9, "{ends:?}");
    }

    /// Every shipped profile says of itself what is assumed, and the sweep of most is profiles too.
    #[test]
    fn shipped_profiles_are_counted() {
        let gigaexpress = profile::find_shipped("fuji-xerox-gigaexpress").unwrap();
        let of = |text: &str| profile::Profile::from_toml(text, "p").unwrap().to_toml();
        assert_eq!(Count::of(gigaexpress), Count::of(&of(gigaexpress)));
        let count = Count::of(gigaexpress);
        assert!(count.mostly() && count.assumed == 3, "{count:?}");
        let drive = profile::find_shipped("samsung-pm9a3").unwrap();
        assert_eq!(Count::of(drive), Count::of(&of(drive)));
        let count = Count::of(drive);
        assert!(!count.mostly() && count.assumed == 8, "{count:?}");
        let read = |text: &String| profile::Profile::from_toml(text, "variant").is_ok();
        assert!(variants(drive).iter().filter(|text| read(text)).count() >= 8);
    }
}
