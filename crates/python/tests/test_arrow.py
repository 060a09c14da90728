"""Columns reach other programs without a copy."""

import gc

import pytest

import wearmark
from wearmark import Trace


def test_pyarrow_sees_the_same_memory(trace):
    pa = pytest.importorskip("pyarrow", reason="there is no pyarrow")
    one, two = pa.table(trace), pa.table(trace)
    assert one.num_rows == 1000
    for name in one.column_names:
        chunks = [table[name].chunk(0) for table in (one, two)]
        if pa.types.is_dictionary(chunks[0].type):
            chunks = [chunk.indices for chunk in chunks]
        # Two exports point at one column: nothing was copied on the way.
        assert chunks[0].buffers()[1].address == chunks[1].buffers()[1].address, name
    assert one["op"].to_pylist() == ["write"] * 1000
    assert one["due_ns"].to_pylist() == [request[0] for request in trace]
    one.validate(full=True)


def test_the_memory_outlives_the_trace():
    pa = pytest.importorskip("pyarrow", reason="there is no pyarrow")
    table = pa.table(Trace.generate("sequential", requests=100_000))
    column = pa.array(wearmark.responses(Trace.generate("random", requests=1000), "intel-x25-e"))
    gc.collect()
    assert table["offset_bytes"].to_pylist()[1] == 4096
    assert len(column) == 1000 and min(column.to_pylist()) > 0


def test_polars_sees_the_same_memory(trace):
    pa = pytest.importorskip("pyarrow", reason="there is no pyarrow")
    pl = pytest.importorskip("polars", reason="there is no polars")
    frame = pl.DataFrame(trace)
    assert frame["offset_bytes"].to_list() == [request[2] for request in trace]
    address = frame["due_ns"].to_arrow().buffers()[1].address
    assert address == pa.table(trace)["due_ns"].chunk(0).buffers()[1].address


def test_an_empty_trace_and_an_unused_capsule(trace):
    pa = pytest.importorskip("pyarrow", reason="there is no pyarrow")
    empty = Trace.from_columns([], [], [], [])
    assert pa.table(empty).num_rows == 0
    # Nobody takes what is in it: it gives back its own.
    for _ in range(100):
        trace.__arrow_c_stream__()
        trace.__arrow_c_schema__()
    assert "arrow_array_stream" in repr(trace.__arrow_c_stream__())


def test_numpy_shares_a_column(trace):
    np = pytest.importorskip("numpy", reason="there is no numpy")
    column = wearmark.responses(trace, "intel-x25-e")
    array = np.asarray(column)
    assert array.dtype == np.uint64 and array.tolist() == column.to_list()
    assert not array.flags.writeable
    made = Trace.from_columns(np.arange(3), np.zeros(3, int), np.full(3, 512), [0, 0, 0])
    assert made.span_ns == 2
