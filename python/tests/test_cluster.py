"""Agents on the workers of a Dask cluster: a scheduler and workers as processes on loopback.

Each worker has an address of its own in 127.0.0.0/8, so that it counts as a host. None of them can
import the package.
"""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_real_agent import ENDLESS, conclusions, kinds_of

from conftest import LONG_S, Bench, skip, until
from fathom_hosts.links.cluster import (
    Tls,
    check_address,
    check_worker,
    choose_workers,
    set_up_dask,
)
from fathom_hosts.refusal import Refusal

WITHOUT_PACKAGE = (
    "import sys; sys.modules['fathom_hosts'] = None; "
    "from distributed.cli.dask_{0} import main; main()"
)
FILES = Tls("ca", "cert", "key")


def test_no_library_writes_to_the_terminal() -> None:
    set_up_dask()
    for name in ("asyncio", "distributed.client", "distributed.comm.core", "tornado.application"):
        assert not logging.getLogger(name).isEnabledFor(logging.CRITICAL), name


def test_one_worker_of_each_host_is_chosen() -> None:
    workers = {
        "tcp://10.0.0.3:1": ("10", "10.0.0.3"),
        "tcp://10.0.0.2:1": ("2", "10.0.0.2"),
        "tcp://10.0.0.2:2": ("1", "10.0.0.2"),
        "tcp://10.0.0.4:9": ("tcp://10.0.0.4:9", "10.0.0.4"),
        "tcp://[fe80::1]:9": ("tcp://[fe80::1]:9", "fe80::1"),
        "tcp://10.0.0.5:1": ("x y ", "10.0.0.5"),
        "tcp://10.0.0.6:1": ("x-y-", "10.0.0.6"),
        "tcp://10.0.0.7:1": ("-oX", "10.0.0.7"),
    }
    assert choose_workers(workers) == {
        "1": "tcp://10.0.0.2:2",
        "10": "tcp://10.0.0.3:1",
        "oX": "tcp://10.0.0.7:1",
        "10.0.0.4": "tcp://10.0.0.4:9",
        "fe80--1": "tcp://[fe80::1]:9",
        "x-y-": "tcp://10.0.0.5:1",
        "x-y--2": "tcp://10.0.0.6:1",
    }
    assert [name for name in choose_workers(workers) if name.isdigit()] == ["1", "10"]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1"])
def test_loopback_needs_no_encryption(address: str) -> None:
    check_address(address, None)
    check_worker(address, None)
    with pytest.raises(Refusal, match="does not use certificates"):
        check_address(address, FILES)
    with pytest.raises(Refusal, match="is not encrypted"):
        check_worker(address, FILES)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tcp://10.0.0.1:8786", "is not encrypted and not on this machine: start the scheduler"),
        ("tcp://127.0.0.1.example.org:1", "is not encrypted and not on this machine"),
        ("tls://10.0.0.1:8786", "needs certificates: give --tls-ca, --tls-cert and --tls-key"),
        ("ws://127.0.0.1:1", "is no address: give tls://HOST:PORT"),
        ("127.0.0.1:8786", "is no address"),
        ("", "is no address"),
    ],
)
def test_what_is_not_safe_is_refused(address: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_address(address, None)
    assert message in str(refused.value)


def test_workers_beyond_loopback_need_encryption() -> None:
    check_worker("tls://10.0.0.9:1", FILES)
    with pytest.raises(Refusal, match="start the scheduler and all workers with TLS"):
        check_worker("tcp://10.0.0.9:1", None)


class Cluster:
    """A scheduler and its workers. They end with the test."""

    def __init__(self, bench: Bench, tls: dict[str, str]) -> None:
        self.bench = bench
        self.processes: list[subprocess.Popen[bytes]] = []
        self.options = [word for option, path in tls.items() for word in (option, path)]
        self.file = bench.folder / "scheduler.json"
        scheme = "tls" if tls else "tcp"
        words = ["--host", f"{scheme}://127.0.0.1", "--port", "0"]
        self.start("scheduler", "--scheduler-file", str(self.file), *words)
        until(lambda: self.file.exists() and self.file.read_text().endswith("}"), "the scheduler")
        self.address: str = json.loads(self.file.read_text())["address"]

    def start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", WITHOUT_PACKAGE.format(kind), *words, "--no-dashboard"]
        log = self.bench.folder / f"{len(self.processes)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*argv, *self.options],
                env=self.bench.environment,
                cwd=self.bench.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self.processes.append(process)
        return process

    def add_worker(self, name: str, host: str) -> subprocess.Popen[bytes]:
        words = ["--host", host, "--name", name, "--nthreads", "1", "--no-nanny"]
        process = self.start("worker", self.address, *words)
        log = self.bench.folder / f"{len(self.processes) - 1}.log"
        until(lambda: "Registered to" in log.read_text(), f"the worker {name}")
        return process

    def words(self, agent: str) -> list[str]:
        return ["--scheduler", self.address, *self.options, "--fathom-there", agent]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster(bench: Bench) -> Iterator[Cluster]:
    cluster = Cluster(bench, {})
    yield cluster
    cluster.end()


def test_agents_on_workers_answer_and_carry_large_lines(bench: Bench, cluster: Cluster) -> None:
    for name, host in (("a", "127.0.0.2"), ("b", "127.0.0.3"), ("c", "127.0.0.3")):
        cluster.add_worker(name, host)
    code, (hello, seen), err = bench.run("run", *cluster.words(str(bench.fake)), "echo")
    assert (code, err) == (0, "")
    assert hello["hosts"] == ["a", "b"], "one agent for each host"
    assert seen == {host: list(range(50)) for host in ("a", "b")}
    code, said, _ = bench.run("run", *cluster.words(str(bench.fake)), "big")
    assert code == 0 and all(one["is_whole"] for one in said) and len(said) == 2
    code, said, err = bench.run("run", *cluster.words("/nowhere/fathom"), "gone")
    assert (code, err) == (0, "")
    assert "could not be started: /nowhere/fathom: No such file or directory" in said[0]


def test_a_lost_worker_is_told_and_the_others_go_on(
    bench: Bench, cluster: Cluster, real_fathom: str
) -> None:
    bench.environment["EXPERIMENT"] = json.dumps(ENDLESS)
    workers = {name: cluster.add_worker(name, f"127.0.0.{i}") for i, name in enumerate("abc", 2)}
    words = [*cluster.words(real_fathom), "--agent-results", str(bench.folder)]
    process = bench.start("run", *words, "experiment")
    assert process.stdout is not None
    said: list[Any] = []
    while sum(one.get("kind") == "progress" for one in said) < 3:
        said.append(json.loads(process.stdout.readline()))
    workers["b"].kill()
    out, err = process.communicate(timeout=LONG_S)
    said += [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, err) == (0, "")
    gone = {one["host"]: one["gone"] for one in said if "gone" in one}
    assert gone["b"].startswith("Dask lost the worker tcp://127.0.0.3:")
    for host in "ac":
        assert gone[host].startswith("the agent ended with exit status ")
        assert kinds_of(said, host)[-2:] == ["ended", "conclusion"]
    assert "conclusion" not in kinds_of(said, "b")
    # The agent of the lost worker has ended by itself, with a result file that is complete.
    until(lambda: len(bench.leftover()) == 3, "the agents to end")
    assert len(conclusions(bench.folder)) == 3 and "none" not in conclusions(bench.folder)


def test_a_lost_scheduler_loses_all_hosts(bench: Bench, cluster: Cluster) -> None:
    cluster.add_worker("a", "127.0.0.2")
    process = bench.start("run", *cluster.words(str(bench.fake)), "ready_then_gone")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == "ready"
    cluster.processes[0].kill()
    out, _ = process.communicate(timeout=LONG_S)
    assert json.loads(out).startswith("Dask lost the worker tcp://127.0.0.2:")


def test_agents_on_workers_end_when_the_router_is_killed(
    bench: Bench, cluster: Cluster, real_fathom: str
) -> None:
    bench.environment["EXPERIMENT"] = json.dumps(ENDLESS)
    cluster.add_worker("a", "127.0.0.2")
    words = [*cluster.words(real_fathom), "--agent-results", str(bench.folder)]
    process = bench.start("run", *words, "experiment")
    assert process.stdout is not None
    while json.loads(process.stdout.readline()).get("kind") != "progress":
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LONG_S)
    until(lambda: len(bench.leftover()) == 2, "the agent to end")
    assert len(conclusions(bench.folder)) == 1 and "none" not in conclusions(bench.folder)


def test_a_cluster_that_cannot_be_used_is_refused(bench: Bench, cluster: Cluster) -> None:
    code, _, err = bench.run("run", *cluster.words("x"), "echo")
    assert code == 2 and "has no workers: start one worker on each host first" in err
    cluster.end()
    code, _, err = bench.run("run", *cluster.words("x"), "echo")
    assert code == 2 and "cannot be reached" in err and err.count("\n") == 1


def certificates(folder: Path) -> dict[str, str]:
    """A certificate that is its own authority, as small clusters have it."""
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*make, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return {"--tls-ca-file": cert, "--tls-cert": cert, "--tls-key": key}


def test_a_cluster_with_tls_answers_and_strangers_are_refused(bench: Bench) -> None:
    if shutil.which("openssl") is None:
        skip("no openssl here: install it")
    files = certificates(bench.folder)
    cluster = Cluster(bench, files)
    try:
        cluster.add_worker("a", "tls://127.0.0.2")
        ours = ["--tls-ca", files["--tls-ca-file"]]
        ours += ["--tls-cert", files["--tls-cert"], "--tls-key", files["--tls-key"]]
        words = ["--scheduler", cluster.address, "--fathom-there", str(bench.fake)]
        code, (_, seen), err = bench.run("run", *words, *ours, "echo")
        assert (code, err) == (0, "")
        assert seen == {"a": list(range(50))}
        other = bench.folder / "other"
        other.mkdir()
        theirs = certificates(other)
        theirs["--tls-ca"] = theirs.pop("--tls-ca-file")
        strange = [word for option, path in theirs.items() for word in (option, path)]
        code, _, err = bench.run("run", *words, *strange, "echo")
        assert code == 2 and "cannot be reached" in err and err.count("\n") == 1
    finally:
        cluster.end()
