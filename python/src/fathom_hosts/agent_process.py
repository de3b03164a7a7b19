"""One agent as a child process: the only place that starts, feeds, hears and ends an agent.

Local agents, `ssh` and the actors on Dask's workers all use it. It goes to the workers by value,
because the package is not installed there, so it imports only what Python itself has (and `lines`,
which goes with it). It never reads what a line says.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import deque

from fathom_hosts.lines import LineSplitter, LineTooLong

# What was heard and not yet fetched. With more than this, the agent's pipe fills, and it waits.
HEARD_BYTES_MAX = 8 << 20
CHUNK_BYTES = 256 << 10
STDERR_BYTES_MAX = 4 << 10
WHY_CHARACTERS_MAX = 500
# An agent ends by itself within 30 s of the end of its stdin, even if its target hangs.
GRACE_S = 35.0
# How long the pipes of a process that has ended may stay open, held by a process of its own.
PIPES_S = 5.0
TICK_S = 0.5


def plain(text: str) -> str:
    """The lines of a text from outside as one line that cannot steer a terminal."""
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)
    lines = ("".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())
    return " / ".join(line.strip() for line in lines if line.strip())


def why_it_ended(exit_status: int, stderr: bytes, advice: dict[int, str]) -> str:
    """What a person needs to know: the exit status, the remedy, and the last words."""
    if exit_status < 0:
        try:
            name = signal.Signals(-exit_status).name
        except ValueError:
            name = "unknown"
        how = f"the agent was killed by signal {-exit_status} ({name})"
    else:
        how = f"the agent ended with exit status {exit_status}"
    if exit_status in advice:
        how += f". {advice[exit_status]}"
    words = plain(stderr.decode("utf-8", "replace"))
    room = WHY_CHARACTERS_MAX - len(how) - len("; it said: ")
    if not words or room < 40:
        return how
    return f"{how}; it said: {words if len(words) <= room else '…' + words[1 - room :]}"


class AgentProcess:
    """An agent, from its start to its end.

    Every method can be called at any time and none raises: what goes wrong is in the reason that
    `hear` gives at the end. So it makes no difference whether it is called here or on a worker.
    """

    def __init__(self, argv: list[str], advice: dict[int, str], alone_s: float | None) -> None:
        """Only notes what `start` is to do.

        `advice` has the remedy for an exit status. After `alone_s` without a call of `hear`, the
        agent is ended: the program that started it is gone. None if the end of stdin tells this.
        """
        self._argv = argv
        self._advice = advice
        self._alone_s = alone_s
        self._process: asyncio.subprocess.Process | None = None
        self._attending: asyncio.Task[None] | None = None
        self._heard: deque[bytes] = deque()
        self._heard_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._stderr = b""
        self._has_exited = False
        self._is_ending = False
        self._kill_at: float | None = None
        self._asked_at = 0.0
        self._trouble: str | None = None
        self._why: str | None = None

    async def start(self) -> None:
        """Starts the process, in a session of its own: a Ctrl-C is fathom's to handle."""
        self._asked_at = asyncio.get_running_loop().time()
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
                limit=CHUNK_BYTES,
            )
        except OSError as error:
            why = plain(f"{self._argv[0]}: {error.strerror or error}")
            self._why = f"the agent could not be started: {why}"
            self._news.set()
            return
        self._attending = asyncio.create_task(self._attend(self._process))
        if self._is_ending:
            await self.end()

    async def say(self, lines: list[bytes]) -> None:
        """Says lines to the agent. If it does not read, this waits, and so does its caller."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        try:
            process.stdin.write(b"".join(line + b"\n" for line in lines))
            await process.stdin.drain()
        except OSError:
            return  # The agent has ended. `hear` gives the reason.

    async def hear(self, patience_s: float) -> tuple[list[bytes], str | None]:
        """All complete lines there are, once there are any, and at the end the reason for it.

        No lines and no reason after `patience_s`, so that a lost caller is noticed.
        """
        self._asked_at = asyncio.get_running_loop().time()
        if not self._heard and self._why is None:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), patience_s)
            except asyncio.TimeoutError:
                pass
        why = self._why
        lines = list(self._heard)
        self._heard.clear()
        self._heard_bytes = 0
        self._room.set()
        return lines, why

    async def end(self) -> None:
        """Ends stdin: the agent ends its load and its result file. Kills what is left later."""
        self._is_ending = True
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        if self._kill_at is None:
            self._kill_at = asyncio.get_running_loop().time() + GRACE_S

    async def kill(self) -> None:
        """Kills the process and its children at once."""
        if self._process is None or self._process.returncode is not None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # It has ended by itself in this moment.

    async def _attend(self, process: asyncio.subprocess.Process) -> None:
        """Stays with the process until it is gone, then knows why."""
        loop = asyncio.get_running_loop()
        stdout = asyncio.create_task(self._read_stdout(process))
        stderr = asyncio.create_task(self._read_stderr(process))
        wait = asyncio.create_task(process.wait())
        # In some versions of Python, wait() also waits for the ends of the pipes, which a process
        # of the agent's can hold open. So the exit status is looked at as well.
        while process.returncode is None:
            await asyncio.wait({wait}, timeout=TICK_S)
            if self._alone_s is not None and loop.time() - self._asked_at > self._alone_s:
                await self.end()
            if self._kill_at is not None and loop.time() > self._kill_at:
                await self.kill()
        self._has_exited = True
        self._room.set()
        tasks = {stdout, stderr, wait}
        _, open_ones = await asyncio.wait(tasks, timeout=PIPES_S)
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._why = self._trouble or why_it_ended(process.returncode, self._stderr, self._advice)
        self._news.set()

    async def _read_stdout(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        splitter = LineSplitter()
        while chunk := await process.stdout.read(CHUNK_BYTES):
            try:
                lines = splitter.feed(chunk)
            except LineTooLong:
                self._trouble = "the agent said a line without an end, and was killed"
                await self.kill()
                return
            if not lines:
                continue
            self._heard.extend(lines)
            self._heard_bytes += sum(map(len, lines))
            self._news.set()
            # What a process that has ended left in its pipe is small, and is always read.
            while self._heard_bytes > HEARD_BYTES_MAX and not self._has_exited:
                self._room.clear()
                await self._room.wait()

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(CHUNK_BYTES):
            self._stderr = (self._stderr + chunk)[-STDERR_BYTES_MAX:]
