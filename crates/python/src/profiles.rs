//! Profiles of devices.

use profile::Profile as Inner;
use pyo3::prelude::*;
use study::profiles::read_text;

use crate::failure::raise;
use crate::table::{Table, escaped};
use crate::values::to_python;

/// What a device is: a model, its parameters and the evidence of each.
#[pyclass(frozen, module = "wearmark")]
pub struct Profile {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Profile {
    /// A shipped profile by name, or a TOML file.
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        let text = read_text(name).map_err(raise)?;
        Ok(Self { inner: Inner::from_toml(&text, name).map_err(raise)? })
    }

    /// A profile from its TOML text; `place` is what errors call it.
    #[staticmethod]
    #[pyo3(signature = (text, place="profile"))]
    fn from_toml(text: &str, place: &str) -> PyResult<Self> {
        Ok(Self { inner: Inner::from_toml(text, place).map_err(raise)? })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Bytes that it offers; None where the profile does not say.
    #[getter]
    fn capacity_bytes(&self) -> Option<u64> {
        self.inner.capacity().map(|capacity| capacity.0)
    }

    /// Bytes of memory that its model takes, about.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.inner.memory().0
    }

    /// Its TOML text.
    fn to_toml(&self) -> String {
        self.inner.to_toml()
    }

    /// The sections of the file as dictionaries.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.inner)
    }

    /// The same with one value changed: `with_field("limits.iops.value", "3000")`.
    fn with_field(&self, field: &str, value: &str) -> PyResult<Self> {
        Ok(Self { inner: self.inner.with_field(field, value).map_err(raise)? })
    }

    /// The same without its write-back cache.
    fn without_cache(&self) -> Self {
        Self { inner: self.inner.without_cache() }
    }

    /// Raises WearmarkError where the profile names an impossible device.
    fn check(&self) -> PyResult<()> {
        self.inner.check().map_err(raise)
    }

    /// In which parameters two profiles differ, and where each value comes from.
    fn diff(&self, other: &Self) -> Table {
        let header = ["FIELD", "LEFT", "RIGHT"].map(str::to_owned).to_vec();
        let side =
            |side: Option<&profile::Side>| side.map_or("-".to_owned(), |side| side.value.clone());
        let rows = profile::diff(&self.inner, &other.inner).into_iter().map(|found| {
            vec![found.field.clone(), side(found.left.as_ref()), side(found.right.as_ref())]
        });
        Table::new(std::iter::once(header).chain(rows).collect())
    }

    fn __repr__(&self) -> String {
        format!("Profile('{}')", self.inner.name())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escaped(&self.inner.to_toml()))
    }
}

/// Names of the profiles that come with wearmark.
#[pyfunction]
pub fn profiles() -> Vec<&'static str> {
    profile::shipped().iter().map(|(name, _)| *name).collect()
}
