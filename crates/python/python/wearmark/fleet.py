"""Fleets on a Ray cluster: the jobs of a plan, done wherever there is a processor.

``wearmark fleet plan`` writes the plan; ``wearmark fleet run --executor ray`` calls this module. A
job's result has the same bytes wherever it is done, and a job with a result is not done again, so
executors may take turns on one plan.

A trace goes into Ray's object store once; tasks take several jobs of one trace and read it once.
A worker that dies takes nothing with it but its own tasks, which Ray gives to another.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ._native import WearmarkError, fleet_run

# Tasks per processor, so that a slow one at the end keeps few waiting.
_PER_PROCESSOR = 4
# How often a task is given to another worker.
_RETRIES = 3
# Seconds between two words of progress.
_TELL_EVERY = 2.0


def run_on_ray(
    plan: str | os.PathLike[str],
    results: str | os.PathLike[str] = "fleet-results",
    *,
    jobs: list[str] | None = None,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Does the jobs of a plan that have no result yet on a Ray cluster.

    ``address`` names the cluster; without it that of ``RAY_ADDRESS``, or one of this machine.
    Workers need the same version of this package, and no shared directory. ``progress`` is called
    with the jobs that are over and all of them. Gives ``done_before``, ``done`` and ``failed``, as
    :func:`fleet_run` does.
    """
    try:
        import ray
    except ImportError:
        raise _fail("there is no Ray", "pip install 'wearmark[ray]'") from None
    plan, results = Path(plan), Path(results)
    shared, all_jobs = _read(plan)
    asked = [job for job in all_jobs if not jobs or job["id"] in jobs]
    todo = [job for job in asked if not _result(results, job["id"]).exists()]
    told: dict[str, Any] = {"done_before": len(all_jobs) - len(todo), "done": 0, "failed": []}
    results.mkdir(parents=True, exist_ok=True)
    own = not ray.is_initialized()
    if own:
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    try:
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        work = ray.remote(max_retries=_RETRIES)(_work)
        waiting = deque(_parts(todo, _PER_PROCESSOR * processors))
        running: dict[Any, list[dict[str, Any]]] = {}
        stored: dict[str, Any] = {}
        while waiting or running:
            # As many as keep everybody busy: traces of later ones need no memory yet.
            while waiting and len(running) < 2 * processors:
                part = waiting.popleft()
                trace = Path(part[0]["trace"])
                if str(trace) not in stored:
                    stored = {str(trace): ray.put(trace.read_bytes())}
                running[work.remote(stored[str(trace)], trace.name, shared, part)] = part
            ended, _ = ray.wait(list(running), num_returns=1)
            for task in ended:
                part = running.pop(task)
                try:
                    found, failed = ray.get(task)
                except ray.exceptions.RayError as error:
                    cause = str(error).strip().splitlines()[-1]
                    found, failed = {}, [(job["id"], cause) for job in part]
                for name, content in found.items():
                    _write(_result(results, name), content)
                told["done"] += len(found)
                told["failed"] += [tuple(one) for one in failed]
            if progress:
                progress(told["done"] + len(told["failed"]), len(todo))
    finally:
        if own:
            ray.shutdown()
    told["failed"].sort()
    return told


def _work(
    trace: bytes, name: str, shared: str, jobs: list[dict[str, Any]]
) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    """Some jobs of one trace, on a worker: the content of each result by the job's name."""
    with tempfile.TemporaryDirectory(prefix="wearmark-fleet-") as scratch:
        place = Path(scratch) / "trace" / name
        place.parent.mkdir()
        place.write_bytes(trace)
        # What a job is called does not depend on where its trace lies.
        lines = [shared, *(json.dumps({**job, "trace": str(place)}) for job in jobs)]
        plan, results = Path(scratch) / "fleet.jsonl", Path(scratch) / "results"
        plan.write_text("\n".join(lines) + "\n")
        told = fleet_run(plan, results)
        found = {path.stem: path.read_bytes() for path in results.glob("*.jsonl")}
        return found, told["failed"]


def _read(plan: Path) -> tuple[str, list[dict[str, Any]]]:
    """The first line of a plan as it is, and its jobs."""
    try:
        shared, *lines = plan.read_text().splitlines()
        return shared, [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise _fail(f"{plan}: {error}", "'wearmark fleet plan' writes one") from None


def _parts(jobs: list[dict[str, Any]], least: int) -> Iterator[list[dict[str, Any]]]:
    """The jobs of each trace together, in pieces where there are fewer traces than asked for."""
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        by_trace.setdefault(job["trace"], []).append(job)
    pieces = -(-least // max(1, len(by_trace)))
    for own in by_trace.values():
        size = -(-len(own) // pieces)
        yield from (own[at : at + size] for at in range(0, len(own), size))


def _result(results: Path, job: str) -> Path:
    return results / f"{job}.jsonl"


def _write(path: Path, content: bytes) -> None:
    """A result is there as a whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def _fail(cause: str, hint: str) -> WearmarkError:
    error = WearmarkError(cause)
    error.hint = hint
    return error


def main() -> int:
    """The executor behind ``wearmark fleet run --executor ray``."""
    parser = argparse.ArgumentParser(prog="python -m wearmark.fleet", description=__doc__)
    parser.add_argument("plan")
    parser.add_argument("--results", default="fleet-results")
    parser.add_argument("--job", action="append")
    parser.add_argument("--address")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    told_at = time.monotonic()

    def progress(over: int, of: int) -> None:
        nonlocal told_at
        if not given.quiet and time.monotonic() - told_at >= _TELL_EVERY:
            told_at = time.monotonic()
            print(f"fleet: {over} of {of} jobs", file=sys.stderr)

    try:
        told = run_on_ray(
            given.plan, given.results, jobs=given.job, address=given.address, progress=progress
        )
    except WearmarkError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; what is done is kept: the same command goes on", file=sys.stderr)
        return 130
    for job, cause in told["failed"]:
        print(f"warning: fleet: {job}: {cause} [job_failed]", file=sys.stderr)
    if given.json:
        print(json.dumps(told))
    else:
        failed = len(told["failed"])
        print(f"{told['done']} jobs done, {told['done_before']} done before, {failed} failed")
    return 1 if told["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
