//! Columns to other programs without a copy: the Arrow C data interface and C stream interface
//! (Apache Arrow format specification), by hand, because Arrow types never appear in a public API
//! and the package needs none of their crates.
//!
//! What is exported points into the columns of a trace and holds a share of it: the memory lives
//! until the last importer lets go. Ops and streams leave as dictionaries over their own codes, so
//! they are not copied either. Tested with pyarrow and polars by the address of a column.

#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use trace::{Op, Trace};

type Keep = Arc<dyn Any + Send + Sync>;

/// `struct ArrowSchema` of the specification.
#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray` of the specification.
#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream` of the specification.
#[repr(C)]
struct ArrowArrayStream {
    get_schema: unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int,
    get_next: unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: what the pointers lead to is owned by the structure alone (boxes) or shared and immutable
// (columns behind an Arc), and the specification lets a consumer release it from any thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: as above.
unsafe impl Send for ArrowArrayStream {}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not released yet, by the field that says so.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not released yet, by the field that says so.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not released yet, by the field that says so.
            unsafe { release(self) }
        }
    }
}

/// The type of a column, by the format strings of the specification.
#[derive(Clone, Copy)]
enum Kind {
    Struct,
    U8,
    U16,
    U32,
    U64,
    Text,
}

impl Kind {
    fn format(self) -> &'static str {
        match self {
            Self::Struct => "+s",
            Self::U8 => "C",
            Self::U16 => "S",
            Self::U32 => "I",
            Self::U64 => "L",
            Self::Text => "u",
        }
    }
}

/// A column to export, before it is put into the structures above.
struct Node {
    name: String,
    kind: Kind,
    length: usize,
    /// As the layout of the type asks for them, the absent validity bitmap included.
    buffers: Vec<*const c_void>,
    children: Vec<Node>,
    dictionary: Option<Box<Node>>,
    keep: Keep,
}

impl Node {
    fn column<T>(name: &str, kind: Kind, values: &[T], keep: &Keep) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            length: values.len(),
            buffers: vec![null(), values.as_ptr().cast()],
            children: Vec::new(),
            dictionary: None,
            keep: Arc::clone(keep),
        }
    }

    /// A column of texts, the only one that is made for the export: names of streams and ops.
    fn texts(values: &[&str]) -> Self {
        let mut ends = vec![0i32];
        let mut bytes: Vec<u8> = Vec::new();
        for value in values {
            bytes.extend(value.as_bytes());
            ends.push(bytes.len() as i32);
        }
        let owned = Arc::new((ends, bytes));
        Self {
            name: String::new(),
            kind: Kind::Text,
            length: values.len(),
            buffers: vec![null(), owned.0.as_ptr().cast(), owned.1.as_ptr().cast()],
            children: Vec::new(),
            dictionary: None,
            keep: owned,
        }
    }

    fn with_dictionary(self, names: &[&str]) -> Self {
        Self { dictionary: Some(Box::new(Self::texts(names))), ..self }
    }
}

/// What a released schema gives back.
struct SchemaOwned {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the private data are the box that `schema_of` made, and this is called once.
    unsafe {
        let owned = Box::from_raw((*schema).private_data.cast::<SchemaOwned>());
        for child in owned.children {
            // A child that the consumer moved away is marked released, and its drop does nothing.
            drop(Box::from_raw(child));
        }
        if !owned.dictionary.is_null() {
            drop(Box::from_raw(owned.dictionary));
        }
        (*schema).release = None;
    }
}

fn schema_of(node: &Node) -> ArrowSchema {
    let format = CString::new(node.kind.format()).expect("formats have no zero");
    let name = CString::new(node.name.replace('\0', " ")).expect("no zero is left");
    let children = node.children.iter().map(|child| Box::into_raw(Box::new(schema_of(child))));
    let dictionary =
        node.dictionary.as_ref().map_or(null_mut(), |own| Box::into_raw(Box::new(schema_of(own))));
    let mut owned =
        Box::new(SchemaOwned { format, name, children: children.collect(), dictionary });
    ArrowSchema {
        format: owned.format.as_ptr(),
        name: owned.name.as_ptr(),
        metadata: null(),
        flags: 0,
        n_children: owned.children.len() as i64,
        children: owned.children.as_mut_ptr(),
        dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(owned).cast(),
    }
}

/// What a released array gives back.
struct ArrayOwned {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
    _keep: Keep,
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the private data are the box that `array_of` made, and this is called once.
    unsafe {
        let owned = Box::from_raw((*array).private_data.cast::<ArrayOwned>());
        for child in &owned.children {
            drop(Box::from_raw(*child));
        }
        if !owned.dictionary.is_null() {
            drop(Box::from_raw(owned.dictionary));
        }
        (*array).release = None;
    }
}

fn array_of(node: Node) -> ArrowArray {
    let children = node.children.into_iter().map(|child| Box::into_raw(Box::new(array_of(child))));
    let children = children.collect();
    let dictionary =
        node.dictionary.map_or(null_mut(), |own| Box::into_raw(Box::new(array_of(*own))));
    let buffers = node.buffers;
    let mut owned = Box::new(ArrayOwned { buffers, children, dictionary, _keep: node.keep });
    ArrowArray {
        length: node.length as i64,
        null_count: 0,
        offset: 0,
        n_buffers: owned.buffers.len() as i64,
        n_children: owned.children.len() as i64,
        buffers: owned.buffers.as_mut_ptr(),
        children: owned.children.as_mut_ptr(),
        dictionary,
        release: Some(release_array),
        private_data: Box::into_raw(owned).cast(),
    }
}

/// The columns of a trace, by the names and units that they have in files.
fn table(trace: &Arc<Trace>) -> Node {
    let keep: Keep = trace.clone();
    let ops = Op::ALL.map(Op::name);
    let streams: Vec<&str> = trace.streams.iter().map(|stream| stream.name.as_str()).collect();
    let mut children = vec![
        Node::column("due_ns", Kind::U64, &trace.due, &keep),
        Node::column("offset_bytes", Kind::U64, &trace.offset, &keep),
        Node::column("len_bytes", Kind::U32, &trace.len, &keep),
        Node::column("op", Kind::U8, &trace.op, &keep).with_dictionary(&ops),
        Node::column("stream", Kind::U16, &trace.stream, &keep).with_dictionary(&streams),
    ];
    if let Some(service) = &trace.service {
        children.push(Node::column("service_ns", Kind::U64, service, &keep));
    }
    if let Some(chains) = &trace.chains {
        children.push(Node::column("actor", Kind::U16, &chains.actor, &keep));
        children.push(Node::column("transaction", Kind::U32, &chains.transaction, &keep));
    }
    Node {
        name: String::new(),
        kind: Kind::Struct,
        length: trace.count(),
        buffers: vec![null()],
        children,
        dictionary: None,
        keep,
    }
}

/// What a stream gives: the whole trace as one batch, then its end.
struct Source {
    trace: Arc<Trace>,
    done: bool,
}

unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the private data are the box that `stream` made; `out` is the caller's to fill and
    // holds nothing yet.
    unsafe {
        let source = &*(*stream).private_data.cast::<Source>();
        out.write(schema_of(&table(&source.trace)));
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `stream_schema`; a stream is used by one thread at a time.
    unsafe {
        let source = &mut *(*stream).private_data.cast::<Source>();
        if source.done {
            // The end is an array that is marked released.
            let end = ArrowArray {
                length: 0,
                null_count: 0,
                offset: 0,
                n_buffers: 0,
                n_children: 0,
                buffers: null_mut(),
                children: null_mut(),
                dictionary: null_mut(),
                release: None,
                private_data: null_mut(),
            };
            out.write(end);
        } else {
            source.done = true;
            out.write(array_of(table(&source.trace)));
        }
    }
    0
}

unsafe extern "C" fn stream_error(_stream: *mut ArrowArrayStream) -> *const c_char {
    // Nothing above fails.
    null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the private data are the box that `stream` made, and this is called once.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Source>()));
        (*stream).release = None;
    }
}

/// A capsule of an `ArrowArrayStream` over the columns of `trace`.
pub fn stream<'py>(py: Python<'py>, trace: &Arc<Trace>) -> PyResult<Bound<'py, PyCapsule>> {
    let source = Box::new(Source { trace: Arc::clone(trace), done: false });
    let stream = ArrowArrayStream {
        get_schema: stream_schema,
        get_next: stream_next,
        get_last_error: stream_error,
        release: Some(release_stream),
        private_data: Box::into_raw(source).cast(),
    };
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A capsule of the schema of [`stream`].
pub fn schema<'py>(py: Python<'py>, trace: &Arc<Trace>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, schema_of(&table(trace)), c"arrow_schema")
}

/// Capsules of schema and array of a column of whole numbers.
pub fn column<'py>(
    py: Python<'py>,
    name: &str,
    values: &Arc<Vec<u64>>,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let keep: Keep = values.clone();
    let node = Node::column(name, Kind::U64, values, &keep);
    let schema = PyCapsule::new_with_value(py, schema_of(&node), c"arrow_schema")?;
    Ok((schema, PyCapsule::new_with_value(py, array_of(node), c"arrow_array")?))
}
