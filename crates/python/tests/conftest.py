"""What several tests need."""

import os
from pathlib import Path

import pytest

import wearmark


@pytest.fixture
def trace() -> wearmark.Trace:
    """Random writes at 500/s for about 2 s."""
    return wearmark.Trace.generate("random", requests=1000, rate="500/s", reads=0)


@pytest.fixture
def venv() -> Path:
    """The empty virtual environment that the package was installed into."""
    place = os.environ.get("WEARMARK_VENV")
    if place is None:
        pytest.skip("WEARMARK_VENV does not name the environment that has the package")
    return Path(place)
