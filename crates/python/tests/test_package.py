"""The package as a whole: documented, typed, with its command."""

import ast
import doctest
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import wearmark
from wearmark import Run


def test_every_public_name_is_documented():
    for name in wearmark.__all__:
        if name == "__version__":
            continue
        value = getattr(wearmark, name)
        assert inspect.getdoc(value), name
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for part, member in vars(value).items():
                if not part.startswith("_"):
                    assert inspect.getdoc(member), f"{name}.{part}"


def test_examples_in_the_documentation_hold():
    for name in ("wearmark", "wearmark._device", "wearmark._runs"):
        found = doctest.testmod(importlib.import_module(name))
        assert found.failed == 0
    assert doctest.testmod(wearmark).attempted >= 4


def test_the_stubs_say_what_there_is():
    from wearmark import _native

    stubs = ast.parse((Path(wearmark.__file__).parent / "_native.pyi").read_text())
    told = {}
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            kinds = (ast.FunctionDef, ast.AnnAssign)
            parts = [part for part in node.body if isinstance(part, kinds)]
            told[node.name] = {
                part.name if isinstance(part, ast.FunctionDef) else part.target.id for part in parts
            }
        elif isinstance(node, ast.FunctionDef):
            told[node.name] = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
        elif isinstance(node, ast.AnnAssign) and node.target.id == "__version__":
            told[node.target.id] = None
    there = {name for name in dir(_native) if not name.startswith("__") or name == "__version__"}
    assert set(told) == there
    for name, parts in told.items():
        value = getattr(_native, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            public = {part for part in vars(value) if not part.startswith("_")}
            assert {part for part in parts if not part.startswith("_")} == public, name
        elif callable(value) and not inspect.isclass(value):
            arguments = list(inspect.signature(value).parameters)
            assert [argument for argument in parts] == arguments, name


def test_pyright_accepts_package_and_stubs():
    pyright = pytest.importorskip("pyright", reason="there is no pyright")
    del pyright
    here = Path(wearmark.__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pyright", str(here)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_comes_with_the_package(venv, tmp_path):
    program = venv / "bin" / "wearmark"
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"wearmark {wearmark.__version__}\n"
    wrong = subprocess.run(
        [program, "sim", "absent.spc", "-p", "intel-x25-e"], capture_output=True, text=True
    )
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: absent.spc")
    assert "\nhint: " in wrong.stderr
    usage = subprocess.run([program, "simulate"], capture_output=True, text=True)
    assert usage.returncode == 2
    # Needs nothing else: the environment is empty but for the package.
    only = [venv / "bin" / "python", "-c", "import wearmark; print(len(wearmark.profiles()))"]
    assert int(subprocess.run(only, capture_output=True, text=True, check=True).stdout) >= 20


def test_a_run_directory_is_read_as_it_is(tmp_path):
    with pytest.raises(wearmark.WearmarkError, match="no run directory") as caught:
        Run(tmp_path)
    assert "study run" in caught.value.hint
    (tmp_path / "study.toml").write_text("")
    (tmp_path / "oltp.json").write_text('{"seed": 3}')
    warning = {"at_s": 1.0, "event": "warning", "code": "cached"}
    lines = json.dumps(warning) + "\n" + json.dumps({"at_s": 2.0, "event": "done"}) + "\n" + '{"at'
    (tmp_path / "events.jsonl").write_text(lines)
    wearmark.Trace.generate("random", requests=10).write(tmp_path / "device.parquet")
    run = Run(tmp_path)
    assert run["oltp"] == {"seed": 3} and not run.is_complete
    assert run.warnings == [warning] and len(list(run.events())) == 2
    assert len(run.trace()) == 10 and run.artifacts == ["device", "oltp"]
    with pytest.raises(wearmark.WearmarkError, match="no such artifact") as caught:
        run["probe"]
    assert "device, oltp" in caught.value.hint


def test_profiles_are_read_changed_and_compared(tmp_path):
    profile = wearmark.Profile("generic-slc-8g")
    assert wearmark.Profile.from_toml(profile.to_toml()) == profile
    assert profile.name in profile._repr_html_() and profile.capacity_bytes > 2**30
    names = [row[0] for row in profile.diff(wearmark.Profile("intel-x25-e")).rows[1:]]
    assert "profile.name" in names
    assert len(profile.diff(profile)) == 0
    path = tmp_path / "bad.toml"
    path.write_text(profile.to_toml() + "\n[nonsense]\n")
    with pytest.raises(wearmark.WearmarkError, match=r"bad\.toml"):
        wearmark.Profile(str(path))


def test_a_fit_of_a_measured_model_gives_the_model_back(tmp_path, venv):
    path = tmp_path / "measurements.json"
    command = [venv / "bin" / "wearmark", "probe", "--profile", "hitachi-15k450"]
    subprocess.run([*command, "--output", path, "--quiet"], check=True, capture_output=True)
    found = wearmark.fit(path, name="again")
    assert found.profile.name == "again" and found.lines
    trace = wearmark.Trace.generate("random", requests=2000, rate="20/s")
    of = lambda device: wearmark.simulate(trace, device).mean_ns()
    assert of(found.profile) == pytest.approx(of("hitachi-15k450"), rel=0.25)
    with pytest.raises(wearmark.WearmarkError, match="absent"):
        wearmark.fit(tmp_path / "absent.json")


def test_results_are_compared_as_the_command_does(tmp_path, venv):
    program, old = venv / "bin" / "wearmark", tmp_path / "old.json"
    wearmark.Trace.generate("random", requests=500).write(tmp_path / "t.parquet")
    simulate = [program, "sim", tmp_path / "t.parquet", "-p", "intel-x25-e", "--json"]
    old.write_bytes(subprocess.run(simulate, check=True, capture_output=True).stdout)
    found = wearmark.compare(old, old)
    told = subprocess.run([program, "compare", old, old, "--json"], capture_output=True, check=True)
    told = json.loads(told.stdout)
    assert found["verdict"] == "no_regression" and found["figures"] == told["figures"]
    with pytest.raises(wearmark.WearmarkError, match="absent"):
        wearmark.compare(old, tmp_path / "absent.json")


def test_a_prediction_without_a_capture_says_so(tmp_path):
    with pytest.raises(wearmark.WearmarkError) as caught:
        wearmark.predict(tmp_path / "absent", ["intel-x25-e"])
    assert "absent" in str(caught.value) and caught.value.hint
