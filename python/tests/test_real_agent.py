"""Real agents of fathom, on a simulated device. The coordinator is still the fake one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import LONG_S, Bench, until

SHORT = ["sim:ssd", "--duration", "5s", "--warm-up", "0s"]
# A simulated device has a time of its own, so that this takes some minutes.
ENDLESS = ["sim:ssd", "--duration", "1000000s", "--warm-up", "0s"]


@pytest.fixture
def real(bench: Bench, real_fathom: str) -> list[str]:
    """The words that make the agents real ones, with their results in a folder of the test."""
    bench.environment["EXPERIMENT"] = json.dumps(SHORT)
    return ["--fathom-there", real_fathom, "--agent-results", str(bench.folder)]


def kinds_of(said: list[Any], host: str) -> list[str]:
    return [one["kind"] for one in said if one["host"] == host and "kind" in one]


def conclusions(folder: Path) -> list[str]:
    files = sorted(folder.glob("*.fathom.jsonl"))
    return [json.loads(file.read_text().splitlines()[-1]).get("ended", "none") for file in files]


def test_an_experiment_on_local_agents_is_complete(bench: Bench, real: list[str]) -> None:
    code, said, err = bench.run("run", "--local", "3", *real, "experiment")
    assert (code, err) == (0, "")
    for host in ("local-1", "local-2", "local-3"):
        kinds = [kind for kind in kinds_of(said, host) if kind != "progress"]
        assert kinds == ["hello", "prepared", "trial", "ended", "conclusion"]
    assert [one["gone"].partition(";")[0] for one in said if "gone" in one] == [
        "the agent ended with exit status 0"
    ] * 3
    assert conclusions(bench.folder) == ["completed"] * 3


def test_what_an_agent_refuses_is_told(bench: Bench, real: list[str]) -> None:
    bench.environment["EXPERIMENT"] = json.dumps(["/nowhere/file"])
    process = bench.start("run", "--local", "1", *real, "experiment")
    assert process.stdout is not None
    while (one := json.loads(process.stdout.readline()))["kind"] != "refused":
        pass
    assert "/nowhere/file" in one["why"]
    process.terminate()
    process.communicate(timeout=LONG_S)


def wait_for_loads(process: subprocess.Popen[str], hosts: int) -> None:
    assert process.stdout is not None
    measuring = 0
    while measuring < hosts:
        measuring += json.loads(process.stdout.readline()).get("kind") == "progress"


def test_loads_end_in_an_orderly_way_when_fathom_is_ended(bench: Bench, real: list[str]) -> None:
    bench.environment["EXPERIMENT"] = json.dumps(ENDLESS)
    process = bench.start("run", "--local", "2", *real, "experiment")
    wait_for_loads(process, 2)
    process.terminate()
    process.communicate(timeout=LONG_S)
    assert process.returncode == 128 + 15
    assert "none" not in conclusions(bench.folder) and len(conclusions(bench.folder)) == 2


def test_loads_end_by_themselves_when_the_router_is_killed(bench: Bench, real: list[str]) -> None:
    bench.environment["EXPERIMENT"] = json.dumps(ENDLESS)
    process = bench.start("run", "--local", "2", *real, "experiment")
    wait_for_loads(process, 2)
    process.kill()
    process.communicate(timeout=LONG_S)
    until(lambda: not bench.leftover(), "the agents to end")
    assert "none" not in conclusions(bench.folder) and len(conclusions(bench.folder)) == 2
