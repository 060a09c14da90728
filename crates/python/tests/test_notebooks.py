"""The notebooks run from their first cell to their last."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[3] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == [
        "a-trace-on-ten-drives",
        "which-volume",
        "write-amplification-against-theory",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="there is no nbclient")
    pytest.importorskip("ipykernel", reason="there is no ipykernel")
    import nbformat

    monkeypatch.delenv("TRACE", raising=False)
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    last = notebook.cells[-1]
    assert last.outputs, "it ends with something to see"
