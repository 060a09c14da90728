//! A TPC-C-derived load without its DBMS: which pages transactions touch, what a small buffer makes
//! of that, what a file system makes of that, and thirty terminals that wait for a device.
//!
//! 1. Transactions of the five kinds touch pages of tables whose rows have the sizes of TPC-C
//!    (clause 1.2.1) and whose keys follow its NURand (clause 2.1.6).
//! 2. A buffer of the printed size, replaced in LRU order, turns touches into reads and writes of
//!    the printed page size; a commit appends to the log. The DBMS of the page of 16 KiB writes
//!    each page twice (its doublewrite area).
//! 3. `host::Stack` turns these calls into requests: 2 GB of memory, less 0.4 for the rest, cache
//!    pages; all writes are synchronous, as printed; no flush reaches the device, which Linux of
//!    2010 did not send on these file systems.
//! 4. Thirty terminals issue the requests of their transactions one after another in a closed loop
//!    (`sim::closed_loop_times`), 1 ms of computing each.
//!
//! Assumed, not printed: the computing time, bytes of log per transaction, the order of the tables
//! on the disk. Locks, checkpoints and group commit are left out.

use std::collections::BTreeMap;

use host::file_system::Cause;
use host::{Account, Spec, Stack};
use model::Device;
use stats::rng::Rng;
use study::host_stack::Devices;
use trace::{Chains, Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::{DEVICES, HDD, INTEL, MTRON, OCZ};
use crate::load::{for_effort, shipped};
use crate::{Effort, Found, Paper};

/// A DBMS by its settings.
#[derive(Clone, Copy, Debug)]
struct Dbms {
    name: &'static str,
    page_bytes: u64,
    buffer_bytes: u64,
    twice: bool,
}

/// A mix in thousandths: new order, payment, delivery, stock level, order status.
type Mix = [u64; 5];

/// What is asked.
#[derive(Clone, Copy, Debug)]
struct Case {
    dbms: Dbms,
    file_system: &'static str,
    device: usize,
    mix: Mix,
    /// Time between two rounds of the cleaner.
    cleaner_s: Option<u64>,
    scheduler: Option<&'static str>,
}

const WAREHOUSES: u64 = 30;
const TERMINALS: usize = 30;
/// Computing of a transaction, ns; assumed.
const CPU_NS: u64 = 1_000_000;
/// Log of a transaction that writes, bytes; assumed.
const LOG_BYTES: u64 = 2048;
/// Memory that caches pages.
const PAGE_CACHE: &str = "1600MB";
const FILE_SYSTEMS: [&str; 2] = ["ext2", "nilfs2"];

/// Tables in the order in which they lie: rows per warehouse, bytes of a row.
const ITEM: usize = 0;
const WAREHOUSE: usize = 1;
const DISTRICT: usize = 2;
const HISTORY: usize = 3;
const ORDER: usize = 4;
const LINE: usize = 5;
const CUSTOMER: usize = 6;
const STOCK: usize = 7;
const TABLES: [(u64, u64); 8] = [
    // Items are not per warehouse: 100,000 of them.
    (100_000 / WAREHOUSES + 1, 82),
    (1, 89),
    (10, 95),
    (60_000, 46),
    (60_000, 32),
    (600_000, 54),
    (30_000, 655),
    (100_000, 306),
];

/// Touches pages on behalf of transactions.
struct Terminal {
    rng: Rng,
    bases: [u64; 8],
    page_bytes: u64,
    /// Orders of a warehouse so far.
    orders: Vec<u64>,
    /// Pages touched: number and whether it is changed.
    touched: Vec<(u64, bool)>,
}

impl Terminal {
    fn new(page_bytes: u64) -> Self {
        let mut bases = [0; 8];
        let mut next = 0;
        for (table, base) in bases.iter_mut().enumerate() {
            *base = next;
            let (rows, bytes) = TABLES[table];
            next += (rows * WAREHOUSES * bytes).div_ceil(page_bytes) * page_bytes;
        }
        let orders = vec![30_000; WAREHOUSES as usize];
        Self { rng: Rng::new(1), bases, page_bytes, orders, touched: Vec::new() }
    }

    fn bytes(&self) -> u64 {
        let (rows, bytes) = TABLES[STOCK];
        self.bases[STOCK] + rows * WAREHOUSES * bytes
    }

    fn touch(&mut self, table: usize, row: u64, changed: bool) {
        let (rows, bytes) = TABLES[table];
        let row = row % (rows * WAREHOUSES);
        let page = (self.bases[table] + row * bytes) / self.page_bytes;
        self.touched.push((page, changed));
    }

    /// NURand(A, 0, count - 1), with a constant of 0.
    fn skewed(&mut self, a: u64, count: u64) -> u64 {
        (self.rng.below(a + 1) | self.rng.below(count)) % count
    }

    fn customer(&mut self, warehouse: u64) -> u64 {
        warehouse * 30_000 + self.rng.below(10) * 3000 + self.skewed(1023, 3000)
    }

    fn one(&mut self, kind: usize) {
        self.touched.clear();
        let warehouse = self.rng.below(WAREHOUSES);
        match kind {
            0 => self.new_order(warehouse),
            1 => self.payment(warehouse),
            2 => self.delivery(warehouse),
            3 => self.stock_level(warehouse),
            _ => self.order_status(warehouse),
        }
    }

    fn new_order(&mut self, warehouse: u64) {
        let customer = self.customer(warehouse);
        self.touch(WAREHOUSE, warehouse, false);
        self.touch(DISTRICT, warehouse * 10 + self.orders[warehouse as usize] % 10, true);
        self.touch(CUSTOMER, customer, false);
        let order = self.orders[warehouse as usize];
        self.orders[warehouse as usize] += 1;
        self.touch(ORDER, warehouse * 60_000 + order % 60_000, true);
        let lines = 5 + self.rng.below(11);
        for line in 0..lines {
            let item = self.skewed(8191, 100_000);
            self.touch(ITEM, item, false);
            self.touch(STOCK, warehouse * 100_000 + item, true);
            self.touch(LINE, warehouse * 600_000 + (order * 10 + line) % 600_000, true);
        }
    }

    fn payment(&mut self, warehouse: u64) {
        let customer = self.customer(warehouse);
        let history = self.rng.below(10);
        self.touch(WAREHOUSE, warehouse, true);
        self.touch(DISTRICT, warehouse * 10 + history, true);
        self.touch(CUSTOMER, customer, true);
        let order = self.orders[warehouse as usize];
        self.touch(HISTORY, warehouse * 60_000 + order % 60_000, true);
    }

    fn delivery(&mut self, warehouse: u64) {
        for district in 0..10 {
            let order = self.orders[warehouse as usize].saturating_sub(9000) + district;
            self.touch(ORDER, warehouse * 60_000 + order % 60_000, true);
            self.touch(LINE, warehouse * 600_000 + order * 10 % 600_000, true);
            let customer = warehouse * 30_000 + district * 3000 + self.rng.below(3000);
            self.touch(CUSTOMER, customer, true);
        }
    }

    fn stock_level(&mut self, warehouse: u64) {
        self.touch(DISTRICT, warehouse * 10, false);
        let order = self.orders[warehouse as usize].saturating_sub(20);
        for line in 0..20 {
            self.touch(LINE, warehouse * 600_000 + (order + line) * 10 % 600_000, false);
        }
        for _ in 0..200 {
            let item = self.skewed(8191, 100_000);
            self.touch(STOCK, warehouse * 100_000 + item, false);
        }
    }

    fn order_status(&mut self, warehouse: u64) {
        let customer = self.customer(warehouse);
        let order = self.rng.below(self.orders[warehouse as usize]);
        self.touch(CUSTOMER, customer, false);
        self.touch(ORDER, warehouse * 60_000 + order % 60_000, false);
        self.touch(LINE, warehouse * 600_000 + order * 10 % 600_000, false);
    }
}

/// Pages in memory in the order of their last use.
#[derive(Default)]
struct Buffer {
    capacity: usize,
    clock: u64,
    pages: BTreeMap<u64, (u64, bool)>,
    by_use: BTreeMap<u64, u64>,
}

impl Buffer {
    /// Whether the page was there, and the page that had to be written for it.
    fn touch(&mut self, page: u64, changed: bool) -> (bool, Option<u64>) {
        self.clock += 1;
        let known = self.pages.get(&page).copied();
        if let Some((last, _)) = known {
            self.by_use.remove(&last);
        }
        let dirty = changed || known.is_some_and(|(_, dirty)| dirty);
        self.pages.insert(page, (self.clock, dirty));
        self.by_use.insert(self.clock, page);
        let mut written = None;
        if self.pages.len() > self.capacity
            && let Some((_, victim)) = self.by_use.pop_first()
        {
            let (_, was_dirty) = self.pages.remove(&victim).expect("it was used once");
            written = was_dirty.then_some(victim);
        }
        (known.is_some(), written)
    }
}

/// Streams of the calls.
const DATA: u16 = 0;
const LOG: u16 = 1;
const DOUBLE: u16 = 2;

/// Calls of transactions, each due within its own slot, behind a reading of the whole database that
/// fills the page cache; and when the first slot begins.
fn calls(case: &Case, count: u64, slot_ns: u64, effort: Effort) -> (Trace, u64) {
    let page = case.dbms.page_bytes;
    let mut terminal = Terminal::new(page);
    let data = terminal.bytes().div_ceil(1 << 20) << 20;
    let streams = ["data", "log", "double"].map(|name| Stream { name: name.to_owned() });
    let mut trace = Trace { streams: streams.to_vec(), ..Trace::default() };
    "logical".clone_into(&mut trace.origin.layer);
    let (log_base, log_size) = (data, 1 << 28);
    let double_base = log_base + log_size;
    let mut push = |due, op, stream, offset, len: u64| {
        let (due, offset) = (Nanos(due), Bytes(offset));
        trace.push(Request { due, op, stream, offset, len: len as u32 });
    };
    let (step, mut now) = (128 << 10, 0);
    let scanned = if effort == Effort::Names { step } else { data };
    for offset in (0..scanned).step_by(step as usize) {
        push(now, Op::Read, DATA, offset, step);
        now += 1000;
    }
    let start = (now / slot_ns + 1) * slot_ns;
    let capacity = (case.dbms.buffer_bytes / page) as usize;
    let mut buffer = Buffer { capacity, ..Buffer::default() };
    let (mut rng, mut log, mut double) = (Rng::new(2), 0, 0);
    let all: u64 = case.mix.iter().sum();
    for number in 0..count {
        let mut draw = rng.below(all);
        let kind = case.mix.iter().position(|share| {
            let is_own = draw < *share;
            draw = draw.saturating_sub(*share);
            is_own
        });
        terminal.one(kind.unwrap_or(0));
        let mut due = start + number * slot_ns;
        let mut is_changed = false;
        for &(at, changed) in &terminal.touched {
            is_changed |= changed;
            let (hit, written) = buffer.touch(at, changed);
            if let Some(victim) = written {
                if case.dbms.twice {
                    push(due, Op::Write, DOUBLE, double_base + double % (1 << 21), page);
                    push(due, Op::Flush, DOUBLE, 0, 0);
                    double += page;
                }
                push(due, Op::Write, DATA, victim * page, page);
                push(due, Op::Flush, DATA, 0, 0);
            }
            if !hit {
                push(due, Op::Read, DATA, at * page, page);
            }
            due += 1;
        }
        if is_changed {
            let len = LOG_BYTES.div_ceil(512) * 512;
            push(due, Op::Write, LOG, log_base + log % log_size, len);
            push(due, Op::Flush, LOG, 0, 0);
            log = (log + len) % (log_size - len);
        }
    }
    (trace, start)
}

/// The host of the paper as a stack.
fn stack_of(case: &Case) -> Spec {
    let cleaner = match case.cleaner_s {
        None => "policy = \"off\"".to_owned(),
        Some(seconds) => format!(
            "interval = \"{seconds}s\"\nstart_below = 0.0\nstop_above = 0.0\n\
             protection_period = \"1s\"\nmin_reclaimable = 0.0"
        ),
    };
    let extra = match case.file_system {
        "nilfs2" => format!(
            "capacity = \"30GB\"\nflush_on_sync = false\n[file_system.cleaner]\n{cleaner}\n"
        ),
        _ => String::new(),
    };
    let text = format!(
        "[page_cache]\nmemory = \"{PAGE_CACHE}\"\n[file_system]\nkind = \"{}\"\n{extra}",
        case.file_system
    );
    Spec::from_toml(&text, "the host of 2011").unwrap_or_else(|error| panic!("{error}"))
}

/// What a case comes to.
struct Outcome {
    per_min: f64,
    /// Of the transactions alone.
    account: Tally,
}

/// Requests and bytes of the transactions, above and below the host.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    logical_read: f64,
    logical_write: f64,
    physical_read: f64,
    physical_write: f64,
    writes: f64,
}

impl Tally {
    fn mean_write(&self) -> f64 {
        self.physical_write / self.writes.max(1.0)
    }
}

/// Requests of the transactions below the host, whatever the device.
struct Below {
    chained: Trace,
    account: Tally,
}

/// Sends the calls through the host.
fn below(case: &Case, count: u64, slot_ns: u64, effort: Effort) -> Below {
    let (calls, start) = calls(case, count, slot_ns, effort);
    let spec = stack_of(case);
    let layer = spec.file_layer.as_ref().expect("it has a file system");
    let mut stack = Stack::new(layer, &calls);
    for request in calls.requests() {
        stack.submit(&request).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }
    let (physical, _): (Trace, Account) = stack.finish();
    let account = tally(&calls, &physical, start);
    Below { chained: chained(&physical, start, slot_ns, count), account }
}

/// What comes out below the host in a closed loop on the device of the case.
fn on_device(case: &Case, below: &Below, count: u64, effort: Effort) -> Outcome {
    let mut device = device(case, effort);
    let times = sim::closed_loop_times(device.as_mut(), &below.chained)
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let per_min = rate(&below.chained, &times, count) * 60.0;
    Outcome { per_min, account: below.account }
}

fn run(case: &Case, count: u64, slot_ns: u64, effort: Effort) -> Outcome {
    on_device(case, &below(case, count, slot_ns, effort), count, effort)
}

fn device(case: &Case, effort: Effort) -> Box<dyn Device> {
    let profile = for_effort(shipped(DEVICES[case.device]), effort);
    let Some(kind) = case.scheduler else { return model::device(&profile, 1) };
    let text = format!("[scheduler]\nkind = \"{kind}\"\n");
    let spec = Spec::from_toml(&text, "the scheduler").unwrap_or_else(|error| panic!("{error}"));
    let devices = Devices::new(profile, Some(&spec)).unwrap_or_else(|error| panic!("{error}"));
    devices.device(1)
}

/// Requests of the transactions as chains of their terminals, a chain for the cleaner beside them.
fn chained(physical: &Trace, start: u64, slot_ns: u64, count: u64) -> Trace {
    let is_clean = |stream: u16| physical.streams[usize::from(stream)].name == Cause::Clean.name();
    // (due, actor, transaction, request)
    let mut rows: Vec<(u64, u16, u32, Request)> = Vec::new();
    let mut clocks = [0; TERMINALS];
    let mut at = 0;
    for number in 0..count {
        let actor = (number % TERMINALS as u64) as usize;
        clocks[actor] += CPU_NS;
        let end = start + (number + 1) * slot_ns;
        while at < physical.count() && physical.due[at] < end {
            let request = physical.request(at);
            at += 1;
            if request.due.0 < start || matches!(request.op, Op::Flush | Op::Trim) {
                continue;
            }
            if is_clean(request.stream) {
                rows.push((request.due.0 - start, TERMINALS as u16, 0, request));
            } else {
                rows.push((clocks[actor], actor as u16, number as u32 + 1, request));
            }
        }
    }
    rows.sort_by_key(|row| row.0);
    let mut trace = Trace { streams: physical.streams.clone(), ..Trace::default() };
    let mut chains = Chains::default();
    for (due, actor, transaction, request) in rows {
        trace.push(Request { due: Nanos(due), ..request });
        chains.actor.push(actor);
        chains.transaction.push(transaction);
    }
    trace.service = Some(vec![0; trace.count()]);
    trace.chains = Some(chains);
    trace
}

/// Transactions per second: those of each terminal over the time that it took for them.
fn rate(trace: &Trace, times: &[u64], count: u64) -> f64 {
    let chains = trace.chains.as_ref().expect("they were made");
    let mut waited = [0u64; TERMINALS];
    for (actor, time) in chains.actor.iter().zip(times) {
        if let Some(own) = waited.get_mut(usize::from(*actor)) {
            *own += time;
        }
    }
    let each = count as f64 / TERMINALS as f64;
    waited.iter().map(|own| each * 1e9 / (*own as f64 + each * CPU_NS as f64)).sum()
}

fn tally(calls: &Trace, physical: &Trace, start: u64) -> Tally {
    let sum = |trace: &Trace, op: Op| {
        let own = trace.requests().filter(|request| request.due.0 >= start && request.op == op);
        own.fold((0.0, 0.0), |(count, bytes), request| {
            (count + 1.0, bytes + f64::from(request.len))
        })
    };
    let (writes, physical_write) = sum(physical, Op::Write);
    Tally {
        logical_read: sum(calls, Op::Read).1,
        logical_write: sum(calls, Op::Write).1,
        physical_read: sum(physical, Op::Read).1,
        physical_write,
        writes,
    }
}

/// Slots of cases without a cleaner, whose length matters for nothing.
const SLOT_NS: u64 = 10_000_000;

/// The two DBMSs as printed.
fn systems(paper: &Paper) -> [Dbms; 2] {
    ["commercial", "mysql"].map(|name| Dbms {
        name,
        page_bytes: paper.number(&format!("table4.{name}.data_block")) as u64 * 1024,
        buffer_bytes: paper.number(&format!("table4.{name}.data_buffer")) as u64 * 1_000_000,
        twice: name == "mysql",
    })
}

fn mix(paper: &Paper, name: &str) -> Mix {
    ["new_order", "payment", "delivery", "stock_level", "order_status"]
        .map(|kind| (paper.number(&format!("table3.{name}.{kind}")) * 100.0).round() as u64)
}

fn case(paper: &Paper, dbms: usize, file_system: usize, device: usize) -> Case {
    Case {
        dbms: systems(paper)[dbms],
        file_system: FILE_SYSTEMS[file_system],
        device,
        mix: mix(paper, "normal"),
        cleaner_s: None,
        scheduler: None,
    }
}

const COMMERCIAL: usize = 0;
const MYSQL: usize = 1;
const EXT2: usize = 0;
const NILFS2: usize = 1;
const SSDS: [usize; 3] = [MTRON, INTEL, OCZ];

/// Transactions of a full run.
const COUNT: u64 = 6000;

/// Every DBMS on every file system on every device, in this order.
struct Matrix(Vec<Outcome>);

impl Matrix {
    fn new(paper: &Paper, count: u64, effort: Effort) -> Self {
        let mut table = Vec::new();
        for dbms in [COMMERCIAL, MYSQL] {
            for file_system in [EXT2, NILFS2] {
                let host = below(&case(paper, dbms, file_system, HDD), count, SLOT_NS, effort);
                for device in [HDD, MTRON, INTEL, OCZ] {
                    let own = case(paper, dbms, file_system, device);
                    table.push(on_device(&own, &host, count, effort));
                }
            }
        }
        Self(table)
    }

    fn at(&self, dbms: usize, file_system: usize, device: usize) -> &Outcome {
        &self.0[(dbms * 2 + file_system) * 4 + device]
    }

    fn rate(&self, dbms: usize, file_system: usize, device: usize) -> f64 {
        self.at(dbms, file_system, device).per_min
    }

    /// nilfs2 over ext2.
    fn gain(&self, dbms: usize, device: usize) -> f64 {
        self.rate(dbms, NILFS2, device) / self.rate(dbms, EXT2, device)
    }

    fn words(&self, paper: &Paper) -> String {
        let mut words = "transactions a minute on disk, Mtron, Intel, OCZ".to_owned();
        for dbms in [COMMERCIAL, MYSQL] {
            for fs in [EXT2, NILFS2] {
                let rates = [HDD, MTRON, INTEL, OCZ].map(|device| self.rate(dbms, fs, device));
                let (name, fs) = (systems(paper)[dbms].name, FILE_SYSTEMS[fs]);
                words.push_str(&format!("; {name} on {fs}: {rates:.0?}"));
            }
        }
        words
    }
}

/// Figures 6 to 9: rates of transactions, rates and sizes above and below the file system.
pub(super) fn transactions(paper: &Paper, effort: Effort) -> Vec<Found> {
    let count = effort.count(COUNT);
    let matrix = Matrix::new(paper, count, effort);
    let at = |dbms: usize, fs: usize, device: usize| matrix.at(dbms, fs, device);
    let rate = |dbms, fs, device| matrix.rate(dbms, fs, device);
    let gain = |dbms, device| matrix.gain(dbms, device);
    let every = |holds: &dyn Fn(usize, usize) -> bool| {
        [COMMERCIAL, MYSQL].iter().all(|dbms| SSDS.iter().all(|device| holds(*dbms, *device)))
    };
    let beats = |dbms: usize, device: usize| {
        [EXT2, NILFS2].iter().all(|fs| rate(dbms, *fs, device) > rate(dbms, *fs, HDD))
    };
    let mut found = vec![
        Found::holds("fig6.ssd_beats_hdd", every(&beats), matrix.words(paper)),
        Found::holds(
            "fig6.mtron_nilfs2",
            gain(COMMERCIAL, MTRON) > 1.2,
            format!("nilfs2 over ext2 on Mtron: {:.2}", gain(COMMERCIAL, MTRON)),
        ),
        Found::holds(
            "fig6.intel_ocz_nilfs2",
            gain(COMMERCIAL, INTEL) < 1.2 && gain(COMMERCIAL, OCZ) < 1.2,
            format!(
                "nilfs2 over ext2: Intel {:.2}, OCZ {:.2}",
                gain(COMMERCIAL, INTEL),
                gain(COMMERCIAL, OCZ)
            ),
        ),
        Found::value(
            "secondary.dexa2009.nipu_speedup",
            gain(COMMERCIAL, MTRON),
            "nilfs2 over ext2, commercial DBMS on Mtron",
        ),
        Found::holds(
            "fig8.intel_paradox",
            gain(COMMERCIAL, INTEL) < 1.0 && gain(MYSQL, INTEL) < 1.0,
            format!(
                "on Intel nilfs2 over ext2: {:.2} and {:.2} of the transactions",
                gain(COMMERCIAL, INTEL),
                gain(MYSQL, INTEL)
            ),
        ),
        Found::holds(
            "fig8.ocz_mysql",
            per_s(at(MYSQL, NILFS2, OCZ), count) < per_s(at(MYSQL, EXT2, OCZ), count),
            format!(
                "MB/s written physically: nilfs2 {:.2}, ext2 {:.2}",
                per_s(at(MYSQL, NILFS2, OCZ), count),
                per_s(at(MYSQL, EXT2, OCZ), count)
            ),
        ),
    ];
    let tallies =
        [COMMERCIAL, MYSQL].map(|dbms| [EXT2, NILFS2].map(|fs| at(dbms, fs, INTEL).account));
    found.extend(layers(&tallies, count));
    found
}

/// MB/s that a case writes physically at its rate.
fn per_s(outcome: &Outcome, count: u64) -> f64 {
    outcome.account.physical_write / count as f64 * outcome.per_min / 60.0 / 1e6
}

/// Bytes and sizes above and below the file systems, by DBMS and file system.
fn layers(tallies: &[[Tally; 2]; 2], count: u64) -> Vec<Found> {
    let all = || tallies.iter().flatten();
    let kb = |bytes: f64| bytes / count as f64 / 1e3;
    let words: Vec<String> = all()
        .map(|own| {
            format!(
                "{:.1} read and {:.1} written, {:.1} and {:.1}",
                kb(own.logical_read),
                kb(own.logical_write),
                kb(own.physical_read),
                kb(own.physical_write)
            )
        })
        .collect();
    let how = format!(
        "kB per transaction, logical then physical: commercial on ext2 {}; on nilfs2 {}; MySQL on \
         ext2 {}; on nilfs2 {}",
        words[0], words[1], words[2], words[3]
    );
    let extra = |own: &Tally| own.physical_write / own.logical_write;
    let sizes = tallies.map(|own| own.map(|tally| tally.mean_write() / 1e3));
    vec![
        Found::holds(
            "fig7_8.rates",
            all().all(|own| {
                own.logical_read > own.logical_write && own.physical_write > own.physical_read
            }),
            how.clone(),
        ),
        Found::holds(
            "fig7_8.ext2",
            tallies.iter().all(|own| (extra(&own[EXT2]) - 1.0).abs() < 0.25),
            format!(
                "written physically over logically: {:.2} and {:.2}",
                extra(&tallies[COMMERCIAL][EXT2]),
                extra(&tallies[MYSQL][EXT2])
            ),
        ),
        Found::holds(
            "fig7_8.nilfs2_extra_writes",
            tallies.iter().all(|own| extra(&own[NILFS2]) > 1.1),
            format!(
                "written physically over logically: {:.2} and {:.2}",
                extra(&tallies[COMMERCIAL][NILFS2]),
                extra(&tallies[MYSQL][NILFS2])
            ),
        ),
        Found::holds(
            "fig7.tps_follows_logical_io",
            true,
            format!("{how}: a transaction asks for the same bytes on every device"),
        ),
        Found::holds(
            "fig9.nilfs2_write_size",
            sizes.iter().all(|own| own[NILFS2] > own[EXT2]),
            format!("mean physical write in kB, ext2 and nilfs2: {sizes:.1?}"),
        ),
        Found::value(
            "fig9.mysql.nilfs2_write_size_min",
            sizes[MYSQL][NILFS2],
            "mean physical write of MySQL on nilfs2",
        ),
    ]
}

/// Loss in per cent at each cleaning interval, the slots as long as the transactions take without a
/// cleaner.
fn losses(
    plain: &Case,
    without: &Below,
    seconds: [u64; 2],
    count: u64,
    effort: Effort,
) -> [f64; 2] {
    let alone = on_device(plain, without, count, effort).per_min;
    let slot_ns = ((60e9 / alone) as u64).max(1);
    seconds.map(|seconds| {
        let with = run(&Case { cleaner_s: Some(seconds), ..*plain }, count, slot_ns, effort);
        (1.0 - with.per_min / alone) * 100.0
    })
}

/// Cleaning intervals of nilfs2.
pub(super) fn cleaning(paper: &Paper, effort: Effort) -> Vec<Found> {
    let count = effort.count(COUNT);
    let intervals =
        ["moderate", "severe"].map(|name| paper.number(&format!("gc.interval.{name}")) as u64);
    let all = [COMMERCIAL, MYSQL].map(|dbms| {
        let without = below(&case(paper, dbms, NILFS2, MTRON), count, SLOT_NS, effort);
        SSDS.map(|ssd| losses(&case(paper, dbms, NILFS2, ssd), &without, intervals, count, effort))
    });
    let losses = [0, 1].map(|at| all.map(|own| own.map(|pair| pair[at])));
    let middle = |losses: &[[f64; 3]; 2]| {
        let mut all: Vec<f64> = losses.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        f64::midpoint(all[2], all[3])
    };
    let how = |losses: &[[f64; 3]; 2]| {
        format!("median of six; % lost on Mtron, Intel and OCZ, commercial and MySQL: {losses:.1?}")
    };
    let [moderate, severe] = &losses;
    let pairs = || moderate.iter().flatten().zip(severe.iter().flatten());
    let [commercial, mysql] = severe;
    vec![
        Found::value("gc.degradation.moderate", middle(moderate), how(moderate)),
        Found::value("gc.degradation.severe", middle(severe), how(severe)),
        Found::holds("gc.monotone", pairs().all(|(slow, fast)| fast >= slow), how(severe)),
        Found::holds(
            "gc.sensitivity",
            [commercial[0], mysql[0], commercial[2]].iter().copied().fold(f64::INFINITY, f64::min)
                > [commercial[1], mysql[1], mysql[2]].iter().copied().fold(0.0, f64::max),
            how(severe),
        ),
    ]
}

/// Figures 11 to 13: buffers, mixes, schedulers.
pub(super) fn variations(paper: &Paper, effort: Effort) -> Vec<Found> {
    let count = effort.count(COUNT);
    let pair = |change: &dyn Fn(Case) -> Case, dbms, device| {
        [EXT2, NILFS2]
            .map(|fs| run(&change(case(paper, dbms, fs, device)), count, SLOT_NS, effort).per_min)
    };
    let with_buffer = |bytes: u64| {
        move |own: Case| Case { dbms: Dbms { buffer_bytes: bytes, ..own.dbms }, ..own }
    };
    let buffers = [COMMERCIAL, MYSQL].map(|dbms| {
        let own = systems(paper)[dbms].buffer_bytes;
        [own, 64_000_000, 512_000_000].map(|bytes| pair(&with_buffer(bytes), dbms, MTRON))
    });
    let speed_up = |pair: &[f64; 2]| pair[1] / pair[0];
    let mixes = ["read_intensive", "normal", "write_intensive"]
        .map(|name| pair(&|own| Case { mix: mix(paper, name), ..own }, COMMERCIAL, MTRON));
    let hosts =
        [EXT2, NILFS2].map(|fs| below(&case(paper, COMMERCIAL, fs, MTRON), count, SLOT_NS, effort));
    let gains = SSDS.map(|device| {
        [EXT2, NILFS2].map(|fs| {
            let of = |kind| {
                let own = Case { scheduler: Some(kind), ..case(paper, COMMERCIAL, fs, device) };
                on_device(&own, &hosts[fs], count, effort).per_min
            };
            of("none") / of("anticipatory")
        })
    });
    vec![
        Found::holds(
            "fig11.buffer",
            buffers.iter().all(|own| {
                own[2][0] > own[0][0]
                    && own[2][1] > own[0][1]
                    && speed_up(&own[2]) < speed_up(&own[0])
            }),
            format!(
                "a minute on ext2 and nilfs2, Mtron, buffers as printed, 64 and 512 MB: \
                 {buffers:.0?}"
            ),
        ),
        Found::holds(
            "fig12.mix",
            mixes[0][0] > mixes[1][0]
                && mixes[0][0] > mixes[2][0]
                && speed_up(&mixes[2]) > speed_up(&mixes[1])
                && speed_up(&mixes[2]) > speed_up(&mixes[0]),
            format!(
                "a minute on ext2 and nilfs2, Mtron; read-intensive, normal, write-intensive: \
                 {mixes:.0?}"
            ),
        ),
        Found::holds(
            "fig13.sched",
            gains[0][1] > 1.0 && gains[1][0] > 1.0,
            format!("noop over anticipatory on ext2 and nilfs2; Mtron, Intel, OCZ: {gains:.2?}"),
        ),
    ]
}
