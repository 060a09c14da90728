"""The Python of the guide runs as it stands, block after block."""

import re
import warnings
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "python.md"


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("polars", reason="there is no polars")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks:
            exec(compile(block, str(GUIDE), "exec"), names)
    said = capsys.readouterr().out
    assert "intel-x25-e" in said and "-- " in said and "E of my model" in said
    assert names["hot"]["len"].sum() == 20_000 and names["low"] < names["high"]
