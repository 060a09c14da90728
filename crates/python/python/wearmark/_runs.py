"""Run directories: what a study left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._native import Profile, Trace, WearmarkError


def _fail(place: Path, cause: str, hint: str) -> WearmarkError:
    error = WearmarkError(f"{place}: {cause}")
    error.hint = hint
    error.add_note(f"hint: {hint}")
    return error


class Run:
    """A run directory, such as ``runs/quickstart-001``.

    ``run["oltp"]`` is the artifact ``oltp.json`` as a dictionary; ``run.trace("device")`` the trace
    ``device.parquet``; ``run.result`` everything in short (``result.json``).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "study.toml").is_file():
            raise _fail(
                self.path,
                "is no run directory: it holds no study.toml",
                "'wearmark study run quickstart' makes one",
            )

    @property
    def artifacts(self) -> list[str]:
        """Names of the artifacts that are there, without their endings, sorted."""
        found = {path.stem for path in self.path.iterdir() if path.suffix in {".json", ".parquet"}}
        return sorted(found)

    @property
    def is_complete(self) -> bool:
        """Whether its last stage is done."""
        return (self.path / "result.json").is_file()

    @property
    def result(self) -> dict[str, Any]:
        """``result.json``: everything in short."""
        return self["result"]

    def __getitem__(self, name: str) -> dict[str, Any]:
        path = self.path / f"{name}.json"
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            hint = (
                f"there are {', '.join(self.artifacts)}; "
                "a run that stopped goes on when it is run again"
            )
            raise _fail(path, "no such artifact", hint) from None

    def trace(self, name: str = "device") -> Trace:
        """The captured trace ``device``, ``logical`` or ``captured-device``."""
        return Trace.read(self.path / f"{name}.parquet")

    @property
    def profile(self) -> Profile:
        """The profile that was fitted to the disk of the run."""
        return Profile(str(self.path / "profile.toml"))

    def events(self) -> Iterator[dict[str, Any]]:
        """The event stream: plan, progress, sample, warning, done; each with ``at_s``."""
        with (self.path / "events.jsonl").open() as lines:
            for line in lines:
                # The last line of a run that was killed may be cut.
                if line.endswith("\n"):
                    yield json.loads(line)

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What makes its figures suspect: code, stage, message, hint."""
        return [event for event in self.events() if event["event"] == "warning"]

    def __repr__(self) -> str:
        return f"Run('{self.path}')"
