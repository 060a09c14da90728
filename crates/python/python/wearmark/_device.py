"""Device models written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ._native import PythonDevice


class Model(Protocol):
    """What a device model is: it takes requests in virtual time and says when they complete."""

    def submit(
        self, now_ns: int, op: str, offset_bytes: int, len_bytes: int, stream: int, /
    ) -> int:
        """When a request that is submitted at ``now_ns`` completes, ns; not before ``now_ns``.

        ``now_ns`` never falls from call to call. ``op`` is ``read``, ``write``, ``trim`` or
        ``flush``; ``stream`` is an index into the streams of the trace.
        """
        ...


def device(
    make: Callable[[int], Model] | None = None,
    *,
    name: str | None = None,
    capacity_bytes: int | None = None,
) -> PythonDevice | Callable[[Callable[[int], Model]], PythonDevice]:
    """Makes a device of a model that is written in Python, for ``simulate`` and ``responses``.

    ``make(seed)`` gives a model in its first state, see ``Model``; a class with an ``__init__``
    that takes the seed will do. Each simulation makes one, so none sees the state of another.
    A call of Python for each request is slow (about a million requests per second and core); it
    is for trying an idea. An exception in ``submit`` ends the simulation and comes out of it.

    >>> @device(name="fixed")
    ... class Fixed:
    ...     def __init__(self, seed):
    ...         self.free = 0
    ...     def submit(self, now, op, offset, size, stream):
    ...         self.free = max(now, self.free) + 100_000
    ...         return self.free
    >>> Fixed
    PythonDevice('fixed')
    """

    def made(make: Callable[[int], Model]) -> PythonDevice:
        own = name if name is not None else getattr(make, "__name__", "python")
        return PythonDevice(make, name=own, capacity_bytes=capacity_bytes)

    return made if make is None else made(make)
