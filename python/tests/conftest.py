"""What the tests share: the programs, and the proof that no test leaves a process behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest

HERE = Path(__file__).parent
MARKER = "FATHOM_HOSTS_TEST"
# Far more than anything takes, because a test must hold on a busy machine.
LONG_S = 240.0


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for a condition, for as long as a busy machine could take."""
    deadline = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.05)


def marked(value: str) -> list[int]:
    """The processes with this marker in their environment, other than zombies."""
    wanted = f"{MARKER}={value}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and wanted in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def skip(why: str) -> NoReturn:
    """Leaves a test out, except where all of them have to run."""
    if os.environ.get("FATHOM_HOSTS_COMPLETE") == "1":
        pytest.fail(why)
    pytest.skip(why)


class Bench:
    """Starts fathom-hosts, with the fakes of this folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marker = str(uuid4())
        self.fake = folder / "fathom"
        script = f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_fathom.py"} "$@"\n'
        self.fake.write_text(script)
        self.fake.chmod(0o755)
        self.environment = {
            **os.environ,
            MARKER: self.marker,
            "PYTHONPATH": str(HERE.parent / "src"),
            "FATHOM_BIN": str(self.fake),
        }

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "fathom_hosts", *words]

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*words),
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def run(self, *words: str) -> tuple[int, list[Any], str]:
        """The exit code, what the scenario printed, and stderr."""
        process = self.start(*words)
        out, err = process.communicate(timeout=LONG_S)
        return process.returncode, [json.loads(line) for line in out.splitlines()], err

    def leftover(self) -> list[int]:
        return marked(self.marker)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    try:
        until(lambda: not bench.leftover(), "the last process of a test to end")
    finally:
        for pid in bench.leftover():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def real_fathom() -> str:
    """The fathom that was built, by FATHOM_BIN or in the folder of cargo."""
    built = HERE.parent.parent / "target" / "debug" / "fathom"
    path = os.environ.get("FATHOM_BIN") or str(built)
    if shutil.which(path) is None:
        skip(f"no fathom at {path}: build it, or set FATHOM_BIN to its path")
    return str(Path(path).absolute())
