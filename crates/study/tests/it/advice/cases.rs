//! Random servers, devices and prices.

use events::Quiet;
use predict::{Learned, Question, calibrate, learn};
use profile::Profile;
use stats::rng::Rng;
use study::advising::placing::{Limits, Placements, placed};
use study::advising::prices::{Asked, PriceBook};
use units::Bytes;

use super::oracle::{Seen, Server, run};

/// Transactions of a capture, and of what is checked against the advice.
const CAPTURED: u32 = 4_000;
const COUNTED: u32 = 20_000;
/// Two choices whose costs differ by less are the same one.
const SAME: f64 = 0.01;

/// A draw whose logarithm is even.
fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

fn server(rng: &mut Rng) -> Server {
    Server {
        terminals: rng.between(1, 33) as u32,
        processors: rng.between(2, 9) as u32,
        client_ns: between(rng, 2e4, 1e5) as u64,
        work_ns: between(rng, 5e4, 5e5) as u64,
        reads: if rng.unit() < 0.3 { 0.0 } else { between(rng, 0.3, 8.0) },
        commits: if rng.unit() < 0.5 { 1.0 } else { between(rng, 0.3, 0.95) },
        log_bytes: between(rng, 200.0, 4000.0) as u64,
        think_ns: if rng.unit() < 0.5 { 0 } else { between(rng, 1e5, 1e7) as u64 },
        wake_ns: between(rng, 5e3, 4e4) as u64,
        switch_ns: between(rng, 1e3, 1e4) as u64,
        sync_ns: between(rng, 2e4, 2e5) as u64,
        read_ns: rng.below(5_000),
        data_bytes: 4 << 30,
    }
}

/// The numbers of a device, by their names in the text below.
#[derive(Clone, Debug)]
struct Numbers {
    read_us: f64,
    write_us: f64,
    us_per_kib: f64,
    flush_us: f64,
    parallelism: u64,
    iops: Option<f64>,
}

impl Numbers {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            read_us: between(rng, 60.0, 6000.0),
            write_us: between(rng, 15.0, 2000.0),
            us_per_kib: between(rng, 0.2, 10.0),
            flush_us: between(rng, 1.0, 5000.0),
            parallelism: [1, 4, 16, 64][rng.below(4) as usize],
            iops: (rng.unit() < 0.3).then(|| between(rng, 500.0, 20_000.0)),
        }
    }

    /// The profile, each number with what `of` makes of it.
    fn profile(&self, name: &str, of: &mut dyn FnMut(f64) -> String) -> Profile {
        let mut line =
            |base: f64, slope: f64| format!("base_us = {}\nus_per_kib = {}\n", of(base), of(slope));
        let read = line(self.read_us, self.us_per_kib);
        let write = line(self.write_us, self.us_per_kib);
        let flush = of(self.flush_us);
        let limits = self.iops.map_or(String::new(), |rate| {
            format!("[limits.iops]\nrate = {{ value = {rate}, source = \"drawn\" }}\n")
        });
        let text = format!(
            "[profile]\nname = \"{name}\"\ndescription = \"drawn\"\nclass = \"sata-ssd\"\n\
             sources = [\"drawn\"]\n[state]\ncondition = \"steady\"\nmeasured = \"2026\"\n\
             [device]\nkind = \"linear\"\ncapacity = \"64GiB\"\n\
             sequential_detection = \"per_stream\"\n\
             parallelism = {{ value = {}, source = \"drawn\" }}\n\
             [device.read.sequential]\n{read}[device.read.random]\n{read}\
             [device.write.sequential]\n{write}[device.write.random]\n{write}\
             [device.flush]\nbase_us = {flush}\n{limits}",
            self.parallelism
        );
        Profile::from_toml(&text, name).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// As it is.
    fn exactly(&self, name: &str) -> Profile {
        self.profile(name, &mut |value| format!("{{ value = {value}, source = \"drawn\" }}"))
    }
}

fn device(profile: &Profile, seed: u64) -> Box<dyn model::Device> {
    model::device(profile, seed)
}

/// What a capture on `source` teaches.
fn capture(server: &Server, source: &Profile, seed: u64) -> Learned {
    let (_, captured) = run(server, vec![device(source, seed)], CAPTURED, seed);
    let mut learned = learn(&captured).unwrap();
    calibrate(&mut learned).unwrap();
    learned
}

/// What really happens on a placement.
fn really(server: &Server, data: &Profile, log: Option<&Profile>, seed: u64, count: u32) -> Seen {
    let apart = log.map(|log| device(log, seed + 1));
    run(server, std::iter::once(device(data, seed)).chain(apart).collect(), count, seed).0
}

/// A price list with one price per device.
fn prices(devices: &[(Profile, f64)]) -> PriceBook {
    let entries: Vec<String> = devices
        .iter()
        .map(|(profile, price)| {
            format!(
                "[[price]]\nprofiles = [\"{}\"]\ndate = \"2026\"\nsource = \"drawn\"\n\
                 per_month = {price}\n",
                profile.name()
            )
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prices.toml");
    std::fs::write(&path, entries.concat()).unwrap();
    PriceBook::read(Some(&path)).unwrap()
}

fn asked() -> Asked {
    Asked { size: Bytes(8 << 30), log_size: Bytes(1 << 30), years: 5.0, currency: "USD".to_owned() }
}

/// A question with an answer by brute force.
pub struct Case {
    seed: u64,
    server: Server,
    learned: Learned,
    devices: Vec<(Profile, f64)>,
    apart: bool,
}

/// A choice: its name, its cost of a million transactions, and what its clients see.
struct Choice {
    name: String,
    cost: f64,
    seen: Seen,
}

impl Case {
    /// A placement over two or three devices, or a purchase of one of three to five.
    pub fn new(seed: u64, apart: bool) -> Self {
        let mut rng = Rng::new(seed);
        let server = server(&mut rng);
        let source = Numbers::draw(&mut rng).exactly("source");
        let count = if apart { rng.between(2, 4) } else { rng.between(3, 6) };
        let devices = (0..count)
            .map(|index| {
                let name = format!("device-{index}");
                (Numbers::draw(&mut rng).exactly(&name), between(&mut rng, 20.0, 200.0))
            })
            .collect();
        let learned = capture(&server, &source, seed);
        Self { seed, server, learned, devices, apart }
    }

    /// Every choice, simulated plainly.
    fn by_force(&self) -> Vec<Choice> {
        let logs =
            std::iter::once(None).chain(self.devices.iter().filter(|_| self.apart).map(Some));
        let all = logs.flat_map(|log| self.devices.iter().map(move |data| (data, log)));
        let choices = all.map(|((data, price), log)| {
            let seen = really(&self.server, data, log.map(|(log, _)| log), self.seed, COUNTED);
            let name = match log {
                Some((log, _)) => format!("{}, log on {}", data.name(), log.name()),
                None => data.name().to_owned(),
            };
            let price = price + log.map_or(0.0, |(_, price)| *price);
            Choice { name, cost: advise::prices::per_million(price, seen.per_min), seen }
        });
        choices.collect()
    }

    fn advice(&self, p99_ms: Option<f64>) -> Placements {
        let book = prices(&self.devices);
        let asked = asked();
        let kind = Some("update".to_owned());
        let limits = Limits { p99_ms, kind: &kind, asked: &asked, book: &book, apart: self.apart };
        let profiles: Vec<Profile> =
            self.devices.iter().map(|(profile, _)| profile.clone()).collect();
        let question = Question { seed: self.seed, ..Question::default() };
        placed(&self.learned, &question, &profiles, &limits, &Quiet).unwrap().0
    }

    /// Whether the advice names by its figures what brute force finds: the cheapest that keeps the
    /// limit.
    pub fn compare(&self) -> Result<(), String> {
        let mut rng = Rng::new(self.seed ^ 0xadce);
        let choices = self.by_force();
        let times = choices.iter().map(|choice| choice.seen.p99_ms);
        let (fastest, slowest) =
            times.fold((f64::MAX, 0f64), |(low, high), own| (low.min(own), high.max(own)));
        let limit = (rng.unit() < 0.5).then(|| between(&mut rng, fastest, slowest * 1.2));
        let keeps = |choice: &&Choice| limit.is_none_or(|limit| choice.seen.p99_ms <= limit);
        let best = choices.iter().filter(keeps).min_by(|a, b| a.cost.total_cmp(&b.cost)).unwrap();
        let advice = self.advice(limit);
        let named = advice.choice.likely.as_deref().unwrap_or("none");
        let chosen = choices.iter().find(|choice| choice.name == named);
        let is_same = chosen.is_some_and(|chosen| chosen.cost <= best.cost * (1.0 + SAME));
        if is_same && chosen.as_ref().is_some_and(keeps) {
            return Ok(());
        }
        let rows: Vec<String> = advice
            .choice
            .ranked
            .iter()
            .map(|own| {
                let real = choices.iter().find(|choice| choice.name == own.offer.name).unwrap();
                format!(
                    "{}: {:?} {:.0} ({:.0}) per min, p99 {:.2?} ({:.2}), cost {:.3} ({:.3})",
                    own.offer.name,
                    own.keeps,
                    own.offer.per_min.value,
                    real.seen.per_min,
                    own.offer.p99_ms.map(|p99| (p99.low, p99.value, p99.high)),
                    real.seen.p99_ms,
                    own.per_million.unwrap().value,
                    real.cost
                )
            })
            .collect();
        Err(format!(
            "{named} instead of {} at {limit:?}, {:?}\n    {}",
            best.name,
            self.server,
            rows.join("\n    ")
        ))
    }
}

/// A prediction for devices whose numbers are known with an error only.
pub struct Doubtful {
    seed: u64,
    server: Server,
    learned: Learned,
    truth: Numbers,
    given: Profile,
}

impl Doubtful {
    /// A third of the devices have measured numbers, a third assumed ones, a third both.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed + 7_000);
        let server = server(&mut rng);
        let source = Numbers::draw(&mut rng).exactly("source");
        let truth = Numbers::draw(&mut rng);
        let learned = capture(&server, &source, seed);
        let error = between(&mut rng, 0.03, 0.2);
        let given = truth.profile("given", &mut |value| {
            // A normal draw, as the sum of twelve even ones.
            let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            let is_assumed = seed % 3 == 1 || (seed % 3 == 2 && rng.unit() < 0.5);
            if is_assumed {
                // Nine of ten lie within a factor of two.
                let value = value * (normal * 2f64.ln() / 1.645).exp();
                return format!("{{ value = {value}, source = \"a guess\", assumed = true }}");
            }
            let value = value * (1.0 + normal * error).max(0.05);
            let error = value * error;
            format!("{{ value = {value}, error = {error}, source = \"measured\" }}")
        });
        Self { seed, server, learned, truth, given }
    }

    /// Whether throughput and response time lie where the advice says.
    pub fn covered(&self) -> Covered {
        let truth = self.truth.exactly("truth");
        let seen = really(&self.server, &truth, None, self.seed, 3 * COUNTED);
        let (asked, book) = (asked(), PriceBook::read(None).unwrap());
        let kind = Some("update".to_owned());
        let limits = Limits { p99_ms: None, kind: &kind, asked: &asked, book: &book, apart: false };
        let question = Question { seed: self.seed, ..Question::default() };
        let profiles = [self.given.clone()];
        let (found, _) = placed(&self.learned, &question, &profiles, &limits, &Quiet).unwrap();
        let own = &found.choice.ranked[0].offer;
        let held = |interval: advise::Interval, real: f64| {
            if (interval.low..=interval.high).contains(&real) {
                return Ok(());
            }
            Err(format!("{real:.3} in {interval:.3?}, {:?} {:?}", self.server, self.truth))
        };
        Covered {
            per_min: held(own.per_min, seen.per_min),
            p99: held(own.p99_ms.unwrap(), seen.p99_ms),
            width: own.per_min.high / own.per_min.low,
        }
    }
}

/// Whether the truth lies in an interval, or how it does not.
pub struct Covered {
    pub per_min: Result<(), String>,
    pub p99: Result<(), String>,
    /// Upper end of the throughput over the lower.
    pub width: f64,
}
