//! Traces: read, made, described, handed on without a copy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use formats::{Columns, Format, ReadOptions, Stop, TimeUnit};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use trace::generate::patterns as named;
use trace::info::miss_ratio::{self, Sampling};
use trace::info::{Options, characterise_with};
use trace::recipe::Recipe;
use trace::surgery::{Slice, scale_time, slice};
use trace::{Op, Stream, imitate};
use units::{Bytes, Nanos};

use crate::failure::{raise, with_hint};
use crate::numbers::whole;
use crate::table::{Table, escaped};
use crate::values::to_python;
use crate::work::{READING, without_lock};
use crate::{arrow, failure};

/// Requests in columns: due time, offset, length, operation, stream, and what a capture knows.
#[pyclass(frozen, module = "wearmark")]
pub struct Trace {
    pub(crate) inner: Arc<trace::Trace>,
}

impl Trace {
    pub fn new(inner: trace::Trace) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// A trace that passed its own checks.
    fn checked(inner: trace::Trace) -> PyResult<Self> {
        inner.validate().map_err(|flaw| {
            with_hint(flaw.to_string(), "sort the requests by their due times, in ns from 0 on")
        })?;
        Ok(Self::new(inner))
    }
}

/// A word of the command line as a value, with the message that the command has.
fn word<T: std::str::FromStr>(given: Option<String>, name: &str) -> PyResult<Option<T>>
where
    T::Err: std::fmt::Display,
{
    let parsed = given.map(|text| text.parse::<T>()).transpose();
    parsed.map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

/// Names or codes of operations.
fn ops(given: &Bound<'_, PyAny>) -> PyResult<Vec<Op>> {
    if let Ok(names) = given.extract::<Vec<String>>() {
        let op = |name: &String| Op::ALL.into_iter().find(|op| op.name() == name);
        let found = names.iter().map(|name| {
            op(name).ok_or_else(|| {
                PyValueError::new_err(format!("op: '{name}' is none of read, write, trim, flush"))
            })
        });
        return found.collect();
    }
    let code = |code: u64| {
        let found = usize::try_from(code).ok().and_then(|at| Op::ALL.get(at)).copied();
        found
            .ok_or_else(|| PyValueError::new_err(format!("op: {code} is none of the codes 0 to 3")))
    };
    whole(given, "op")?.into_iter().map(code).collect()
}

fn narrow<T: TryFrom<u64>>(values: Vec<u64>, name: &str) -> PyResult<Vec<T>> {
    let too_large = |_| PyValueError::new_err(format!("{name}: a number is too large"));
    values.into_iter().map(T::try_from).collect::<Result<_, _>>().map_err(too_large)
}

#[pymethods]
impl Trace {
    /// Reads a trace of any known format, detected from its content; it may be compressed.
    #[staticmethod]
    #[pyo3(signature = (path, *, format=None, columns=None, lenient=false, time_unit=None,
                        sector_bytes=None, capacity_bytes=None, queued_times=false, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        columns: Option<String>,
        lenient: bool,
        time_unit: Option<String>,
        sector_bytes: Option<u32>,
        capacity_bytes: Option<u64>,
        queued_times: bool,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let options = ReadOptions {
            format: word::<Format>(format, "format")?,
            columns: word::<Columns>(columns, "columns")?,
            lenient,
            threads: threads.unwrap_or_else(all).max(1),
            time_unit: word::<TimeUnit>(time_unit, "time_unit")?,
            sector_bytes,
            read_is_one: None,
            capacity: capacity_bytes.map(Bytes),
            queued_times,
            stop: Stop::on(&READING),
        };
        let reading = without_lock(py, |_| formats::read(&path, &options).map_err(raise))?;
        failure::warn(py, &reading.notes.warnings)?;
        if reading.notes.bad > 0 {
            let message = format!("{}: {} bad records left out", path.display(), reading.notes.bad);
            failure::warn(py, &[events::Warning::new("trace", "bad_records", message)])?;
        }
        Ok(Self::new(reading.trace))
    }

    /// Makes a trace of a named pattern, a shipped recipe or a recipe's file; further keywords are
    /// options of the pattern. The same seed makes the same trace.
    #[staticmethod]
    #[pyo3(signature = (pattern, *, requests=None, seed=1, **options))]
    fn generate(
        py: Python<'_>,
        pattern: &str,
        requests: Option<u64>,
        seed: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut given = Vec::new();
        for (name, value) in options.into_iter().flatten() {
            given.push((name.extract::<String>()?, value.str()?.to_string()));
        }
        let recipe = wearmark::recipe(pattern, &given).map_err(raise)?;
        let made = without_lock(py, |_| recipe.generate(seed, requests).map_err(raise))?;
        Ok(Self::new(made))
    }

    /// A trace of columns that Python has: numpy arrays, lists, anything with whole numbers.
    #[staticmethod]
    #[pyo3(signature = (due_ns, offset_bytes, len_bytes, op, *, stream=None, streams=None,
                        service_ns=None, source="made in Python"))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn from_columns(
        due_ns: &Bound<'_, PyAny>,
        offset_bytes: &Bound<'_, PyAny>,
        len_bytes: &Bound<'_, PyAny>,
        op: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        streams: Option<Vec<String>>,
        service_ns: Option<&Bound<'_, PyAny>>,
        source: &str,
    ) -> PyResult<Self> {
        let due = whole(due_ns, "due_ns")?;
        let stream = match stream {
            Some(given) => narrow(whole(given, "stream")?, "stream")?,
            None => vec![0; due.len()],
        };
        let service = service_ns.map(|given| whole(given, "service_ns")).transpose()?;
        let names = streams.unwrap_or_else(|| vec!["data".to_owned()]);
        Self::checked(trace::Trace {
            due,
            offset: whole(offset_bytes, "offset_bytes")?,
            len: narrow(whole(len_bytes, "len_bytes")?, "len_bytes")?,
            op: ops(op)?,
            stream,
            service,
            chains: None,
            streams: names.into_iter().map(|name| Stream { name }).collect(),
            origin: trace::Origin { source: source.to_owned(), ..trace::Origin::default() },
        })
    }

    /// Writes the trace, whole or not at all; the format follows the name, or `format`. Gives what
    /// the format could not hold, by count.
    #[pyo3(signature = (path, *, format=None))]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
    ) -> PyResult<BTreeMap<String, u64>> {
        let format = word::<Format>(format, "format")?;
        let losses =
            without_lock(py, |_| wearmark::save_trace(&*self.inner, &path, format).map_err(raise))?;
        Ok(losses.into_iter().map(|loss| (loss.what, loss.count)).collect())
    }

    /// Fits a generator to this trace and makes another like it.
    #[pyo3(signature = (*, requests=None, seed=1))]
    fn imitate(&self, py: Python<'_>, requests: Option<u64>, seed: u64) -> PyResult<Self> {
        let made = without_lock(py, |_| {
            let imitation = imitate::fit(&self.inner, &self.inner.origin.source).map_err(raise)?;
            Recipe::Imitation(Box::new(imitation)).generate(seed, requests).map_err(raise)
        })?;
        Ok(Self::new(made))
    }

    /// How far `made` is from this trace: sizes, gaps, shares, locality.
    fn distances(&self, py: Python<'_>, made: &Self) -> PyResult<Py<PyAny>> {
        let (own, made) = (&self.inner, &made.inner);
        let found = without_lock(py, |_| Ok(imitate::compare(own, made)))?;
        to_python(py, &found)
    }

    /// What is in the trace, as `wearmark trace info --json` prints it.
    #[pyo3(signature = (*, full=false))]
    fn info(&self, py: Python<'_>, full: bool) -> PyResult<Py<PyAny>> {
        let info =
            without_lock(py, |sink| Ok(characterise_with(&self.inner, Options { full }, sink)))?;
        to_python(py, &info)
    }

    /// LRU miss ratio by cache size: exact, or of a sample of the blocks.
    #[pyo3(signature = (*, rate=1.0, seed=1))]
    fn miss_ratio_curve(&self, py: Python<'_>, rate: f64, seed: u64) -> PyResult<Py<PyAny>> {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(PyValueError::new_err("rate: must be above 0 and at most 1"));
        }
        let curve = without_lock(py, |_| {
            Ok(if rate == 1.0 {
                miss_ratio::exact(&self.inner)
            } else {
                miss_ratio::sampled(&self.inner, Sampling { rate, seed })
            })
        })?;
        let dict = PyDict::new(py);
        dict.set_item("block_bytes", curve.block_bytes)?;
        dict.set_item("rate", curve.rate)?;
        dict.set_item("touches", curve.touches)?;
        dict.set_item("working_set_blocks", curve.working_set_blocks)?;
        let sizes: Vec<u64> = curve.points.iter().map(|point| point.cache_blocks).collect();
        let ratios: Vec<f64> = curve.points.iter().map(|point| point.miss_ratio).collect();
        dict.set_item("cache_blocks", sizes)?;
        dict.set_item("miss_ratio", ratios)?;
        Ok(dict.into_any().unbind())
    }

    /// The part that is due in a span (ns, the end not included), of some streams.
    #[pyo3(signature = (*, from_ns=None, to_ns=None, streams=None))]
    fn slice(
        &self,
        from_ns: Option<u64>,
        to_ns: Option<u64>,
        streams: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let time = (from_ns.is_some() || to_ns.is_some())
            .then(|| Nanos(from_ns.unwrap_or(0))..Nanos(to_ns.unwrap_or(u64::MAX)));
        let how = Slice { time, streams: streams.unwrap_or_default(), ..Slice::default() };
        Ok(Self::new(slice(&self.inner, &how).map_err(raise)?))
    }

    /// The same requests with all due times multiplied by `factor`: 0.5 is twice as fast.
    fn scale_time(&self, factor: f64) -> PyResult<Self> {
        Ok(Self::new(scale_time((*self.inner).clone(), factor).map_err(raise)?))
    }

    /// Due time of the last request, ns.
    #[getter]
    fn span_ns(&self) -> u64 {
        self.inner.span().0
    }

    /// One byte past the last one that any request touches.
    #[getter]
    fn extent_bytes(&self) -> u64 {
        self.inner.extent().0
    }

    /// Names of the streams.
    #[getter]
    fn streams(&self) -> Vec<&str> {
        self.inner.streams.iter().map(|stream| stream.name.as_str()).collect()
    }

    /// How it was made.
    #[getter]
    fn source(&self) -> &str {
        &self.inner.origin.source
    }

    /// Which layer it shows: 'logical', 'device', or empty where unknown.
    #[getter]
    fn layer(&self) -> &str {
        &self.inner.origin.layer
    }

    /// What else is known of its origin.
    #[getter]
    fn facts(&self) -> BTreeMap<String, String> {
        self.inner.origin.facts.clone()
    }

    /// Whether it has service times and actors, which closed loops need.
    #[getter]
    fn is_captured(&self) -> bool {
        self.inner.captured().is_some()
    }

    fn __len__(&self) -> usize {
        self.inner.count()
    }

    /// The request at an index: due_ns, op, offset_bytes, len_bytes, stream.
    fn __getitem__(&self, index: isize) -> PyResult<(u64, &'static str, u64, u32, &str)> {
        let count = self.inner.count();
        let at = if index < 0 { index + count as isize } else { index };
        let at = usize::try_from(at).ok().filter(|at| *at < count);
        let at = at.ok_or_else(|| PyIndexError::new_err("trace index out of range"))?;
        let request = self.inner.request(at);
        let stream = &self.inner.streams[usize::from(request.stream)].name;
        Ok((request.due.0, request.op.name(), request.offset.0, request.len, stream))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __repr__(&self) -> String {
        let seconds = self.inner.span().as_secs_f64();
        format!(
            "Trace({} requests, {seconds:.3} s, {})",
            self.inner.count(),
            self.inner.origin.source
        )
    }

    fn _repr_html_(&self) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let count = |op: Op| self.inner.op.iter().filter(|own| **own == op).count();
        let mut rows = vec![row("TRACE", escaped(&self.inner.origin.source))];
        rows.push(row("requests", self.inner.count().to_string()));
        rows.extend(Op::ALL.map(|op| row(&format!("{}s", op.name()), count(op).to_string())));
        rows.push(row("span", format!("{:.3} s", self.inner.span().as_secs_f64())));
        rows.push(row("extent", format!("{:.1} MiB", self.inner.extent().0 as f64 / 1048576.0)));
        rows.push(row("streams", self.streams().join(", ")));
        Table::new(rows).html()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer give its own types whatever was requested.
        let _ = requested_schema;
        arrow::stream(py, &self.inner)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.inner)
    }
}

/// Patterns of `Trace.generate`: name, what it is, and its options with their defaults.
#[pyfunction]
pub fn patterns() -> Vec<(&'static str, &'static str, BTreeMap<&'static str, &'static str>)> {
    let options = |pattern: &'static named::NamedPattern| {
        pattern.options.iter().map(|option| (option.name, option.default)).collect()
    };
    named::all().map(|pattern| (pattern.name, pattern.what, options(pattern))).collect()
}
