"""Storage under transactions: traces, device profiles, simulation, prediction, statistics.

The same crates as the ``wearmark`` command, as Python objects. Times are whole nanoseconds
(``..._ns``), sizes bytes (``..._bytes``); a column of a trace has one entry per request.

>>> import wearmark
>>> trace = wearmark.Trace.generate("random", requests=1000, rate="500/s", reads=0)
>>> len(trace)
1000
>>> outcome = wearmark.simulate(trace, "generic-slc-8g")
>>> outcome.requests
1000
"""

from __future__ import annotations

from ._native import (
    Column,
    Fit,
    Outcome,
    Profile,
    PythonDevice,
    SuspectResult,
    Table,
    Trace,
    WearmarkError,
    __version__,
    bootstrap,
    compare,
    demerit,
    error_ratio,
    fit,
    fleet_run,
    mser5,
    patterns,
    predict,
    profiles,
    quantile,
    ratio_of_medians,
    responses,
    simulate,
    steady,
    table,
)
from ._device import device
from ._runs import Run

__all__ = [
    "Column",
    "Fit",
    "Outcome",
    "Profile",
    "PythonDevice",
    "Run",
    "SuspectResult",
    "Table",
    "Trace",
    "WearmarkError",
    "__version__",
    "bootstrap",
    "compare",
    "demerit",
    "device",
    "error_ratio",
    "fit",
    "fleet_run",
    "mser5",
    "patterns",
    "predict",
    "profiles",
    "quantile",
    "ratio_of_medians",
    "responses",
    "simulate",
    "steady",
    "table",
]
