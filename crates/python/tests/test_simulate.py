"""Simulation: profiles, models of Python, the same figures as the command."""

import json
import subprocess
import sys
import threading
import time

import pytest

import wearmark
from wearmark import Profile, Trace, simulate


@wearmark.device(name="fixed")
class Fixed:
    """One request at a time, 100 us each."""

    def __init__(self, seed):
        self.free = 0

    def submit(self, now, op, offset, size, stream):
        self.free = max(now, self.free) + 100_000
        return self.free


def test_a_model_of_python_obeys_pollaczek_and_khinchine():
    # M/D/1 at utilisation 0.5: the mean wait is rho s / (2 (1 - rho)) = s / 2.
    trace = Trace.generate("random", requests=200_000, rate="5000/s")
    mean = simulate(trace, Fixed).mean_ns()
    assert mean == pytest.approx(150_000, rel=0.02)


def test_a_model_of_python_stands_beside_profiles(trace):
    both = simulate(trace, ["generic-slc-8g", Fixed, Profile("intel-x25-e")])
    assert [outcome.profile for outcome in both] == ["generic-slc-8g", "fixed", "intel-x25-e"]
    assert both[1].to_dict() == simulate(trace, Fixed).to_dict()
    assert both[0].to_dict() == simulate(trace, "generic-slc-8g").to_dict()
    table = wearmark.table(both)
    assert "fixed" in str(table) and "<th>fixed</th>" in table._repr_html_()


def test_responses_are_those_of_the_model(trace):
    column = wearmark.responses(trace, Fixed)
    free, expected = 0, []
    for due, *_ in trace:
        free = max(due, free) + 100_000
        expected.append(free - due)
    assert column.to_list() == expected
    assert memoryview(column).tolist() == expected
    outcome = simulate(trace, Fixed)
    assert outcome.mean_ns() == pytest.approx(sum(expected) / len(expected))


def test_an_exception_of_a_model_comes_out(trace):
    calls = []

    class Broken:
        def __init__(self, seed):
            self.left = 3

        def submit(self, now, op, offset, size, stream):
            calls.append(now)
            self.left -= 1
            if self.left == 0:
                raise LookupError("of the model")
            return now

    broken = wearmark.device(Broken)
    with pytest.raises(LookupError, match="of the model"):
        simulate(trace, broken)
    assert len(calls) == 3, "a model that raised is not asked again"
    with pytest.raises(LookupError, match="of the model"):
        wearmark.responses(trace, broken)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda now: now - 1, "before it was submitted"),
        (lambda now: "soon", "whole ns, not 'soon'"),
    ],
)
def test_answers_that_cannot_be_are_refused(trace, answer, told):
    class Wrong:
        def __init__(self, seed):
            pass

        def submit(self, now, op, offset, size, stream):
            return answer(now) if now else now

    with pytest.raises((RuntimeError, ValueError), match=told):
        simulate(trace, wearmark.device(Wrong, name="wrong"))


def test_a_trace_that_does_not_fit_is_refused_before_anything_runs(trace):
    small = wearmark.device(lambda seed: 1 / 0, name="small", capacity_bytes=4096)
    with pytest.raises(ZeroDivisionError):
        simulate(trace, small)
    class Never:
        def __init__(self, seed): pass
        def submit(self, *request): raise AssertionError("it runs")
    with pytest.raises(wearmark.WearmarkError, match="4 KiB|4096"):
        simulate(trace, wearmark.device(Never, capacity_bytes=4096))
    with pytest.raises(wearmark.WearmarkError) as caught:
        simulate(trace, "fuji-xerox")
    assert "wearmark profile list" in caught.value.hint


def test_what_is_asked_of_an_outcome_exists(trace):
    outcome = simulate(trace, "intel-x25-e")
    assert outcome.quantile_ns(1.0) >= outcome.quantile_ns(0.5, op="write", stream="data") > 0
    assert sum(count for _, count in outcome.histogram()) == 1000 == outcome.requests
    with pytest.raises(KeyError, match="read"):
        outcome.mean_ns(op="read")
    with pytest.raises(ValueError, match="'erase' is no operation"):
        outcome.mean_ns(op="erase")
    with pytest.raises(ValueError, match="q:"):
        outcome.quantile_ns(2)


def test_a_closed_loop_needs_a_captured_trace(trace):
    with pytest.raises(wearmark.WearmarkError):
        simulate(trace, "intel-x25-e", closed=True)


def test_an_overloaded_device_warns(trace):
    fast = Trace.generate("random", requests=20_000, rate="20k/s", reads=0)
    with pytest.warns(wearmark.SuspectResult, match="overloaded"):
        assert simulate(fast, "generic-slc-8g").is_overloaded


def test_python_and_the_command_say_the_same(tmp_path, trace, venv):
    path = tmp_path / "t.parquet"
    trace.write(path)
    command = [venv / "bin" / "wearmark", "sim", path, "-p", "intel-x25-e", "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert told["devices"] == [simulate(trace, "intel-x25-e").to_dict()]


def test_the_lock_of_the_interpreter_is_released():
    trace = Trace.generate("random", requests=3_000_000, rate="1000/s")
    counted = []
    done = threading.Event()

    def count():
        while not done.is_set():
            counted.append(1)
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = len(counted)
    simulate(trace, "intel-x25-e")
    during = len(counted) - before
    done.set()
    counter.join()
    assert during > 20


def test_ctrl_c_ends_a_simulation():
    code = """
import wearmark
trace = wearmark.Trace.generate("random", requests=4_000_000, rate="1000/s")
calls = 0
class Slow:
    def __init__(self, seed): pass
    def submit(self, now, *request):
        global calls
        calls += 1
        return now
print("begun", flush=True)
try:
    wearmark.simulate(trace, wearmark.device(Slow))
except KeyboardInterrupt:
    print("stopped", calls < 4_000_000, flush=True)
"""
    import signal

    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "stopped True\n"
    assert child.returncode == 0
