"""Fleets: jobs done from Python, and on a Ray cluster of two workers of which one dies."""

import json
import subprocess
import sys
import threading

import pytest

import wearmark
from wearmark import fleet

PROFILES = ["intel-x25-e", "generic-slc-8g", "hitachi-15k450"]


@pytest.fixture
def plan(tmp_path, venv, monkeypatch):
    """A plan of four traces on three profiles, 20,000 requests each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    for seed in range(4):
        made = wearmark.Trace.generate("random", requests=20_000, rate="100/s", seed=seed)
        made.write(tmp_path / "traces" / f"{seed}.parquet")
    command = [venv / "bin" / "wearmark", "fleet", "plan", "traces", "--quiet"]
    for profile in PROFILES:
        command += ["--profile", profile]
    subprocess.run(command, check=True, capture_output=True)
    return tmp_path / "fleet.jsonl"


def contents(results):
    return {path.name: path.read_bytes() for path in results.iterdir()}


def test_jobs_are_done_once_and_as_by_the_command(plan, venv, tmp_path):
    ids = [json.loads(line)["id"] for line in plan.read_text().splitlines()[1:]]
    results = tmp_path / "results"
    told = wearmark.fleet_run(plan, results, jobs=ids[:5])
    assert told == {"done_before": 7, "done": 5, "failed": []}
    told = wearmark.fleet_run(plan, results, threads=2)
    assert told == {"done_before": 5, "done": 7, "failed": []}
    command = [venv / "bin" / "wearmark", "fleet", "run", "--results", "others", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    assert contents(results) == contents(tmp_path / "others") and len(ids) == 12
    with pytest.raises(wearmark.WearmarkError, match="no job 'nonsense'"):
        wearmark.fleet_run(plan, results, jobs=["nonsense"])


def test_without_ray_it_says_what_to_install(plan, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(wearmark.WearmarkError) as caught:
        fleet.run_on_ray(plan)
    assert "wearmark[ray]" in caught.value.hint


def test_few_traces_are_split_so_that_all_have_work():
    jobs = [{"id": str(at), "trace": "a" if at < 8 else "b"} for at in range(10)]
    sizes = lambda least: [len(part) for part in fleet._parts(jobs, least)]
    assert sizes(1) == [8, 2] and sizes(4) == [4, 4, 1, 1]
    for least in (1, 3, 8, 100):
        parts = list(fleet._parts(jobs, least))
        assert [job for part in parts for job in part] == jobs
        assert all(len({job["trace"] for job in part}) == 1 for part in parts)


def test_a_cluster_that_loses_a_worker_leaves_the_same_bytes(plan, tmp_path):
    ray = pytest.importorskip("ray", reason="there is no ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        lost = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        first, results = threading.Event(), tmp_path / "ray"
        over = []

        def progress(done, of):
            over.append((done, of))
            if not first.is_set():
                first.set()
                cluster.remove_node(lost, allow_graceful=False)

        told = fleet.run_on_ray(plan, results, progress=progress)
        assert told == {"done_before": 0, "done": 12, "failed": []}
        assert over[-1] == (12, 12) and over == sorted(over) and len(over) > 2
        again = fleet.run_on_ray(plan, results)
        assert again == {"done_before": 12, "done": 0, "failed": []}
    finally:
        ray.shutdown()
        cluster.shutdown()
    wearmark.fleet_run(plan, tmp_path / "local", threads=2)
    assert contents(results) == contents(tmp_path / "local")


def test_a_job_that_cannot_be_done_does_not_end_the_others(plan, tmp_path, capsys, monkeypatch):
    pytest.importorskip("ray", reason="there is no ray")
    wearmark.Trace.generate("random", requests=10).write(tmp_path / "traces" / "2.parquet")
    monkeypatch.setattr(sys, "argv", ["fleet", "fleet.jsonl", "--results", "ray"])
    assert fleet.main() == 1
    said = capsys.readouterr()
    assert said.out == "9 jobs done, 0 done before, 3 failed\n"
    assert said.err.count("its content changed") == 3
