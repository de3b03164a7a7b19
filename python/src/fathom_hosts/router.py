"""Runs fathom as a child, and passes lines between it and the agents.

The protocol has version 1, and is JSON in lines over a Unix socket:

    router -> fathom   {"router":1,"hosts":["a","b"]}      the first line
    router -> fathom   {"host":"a","line":OBJECT}          the agent of a said this
    router -> fathom   {"host":"a","gone":"WHY"}           once, when the agent of a is gone
    fathom -> router   {"host":"a","line":OBJECT}          say this to the agent of a

A slow host does not keep the others waiting: each has a queue and tasks of its own. If fathom is
slow, every agent waits, which the protocol of the agents allows for.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fathom_hosts.agent_process import CHUNK_BYTES, GRACE_S, plain
from fathom_hosts.foreground import is_foreground
from fathom_hosts.lines import LineSplitter, LineTooLong
from fathom_hosts.links.link import Link, LinkLost
from fathom_hosts.refusal import Refusal

# Fathom says about one line a second to each agent. One that is so far behind does not listen.
QUEUE_LINES_MAX = 1000
# The path of a Unix socket has at most 107 bytes.
SOCKET_BYTES_MAX = 100
# Beyond the time after which a link kills its agent.
ENDING_S = GRACE_S + 5.0
# How long the last lines of fathom's may take to the agents, before their stdin ends.
LAST_WORDS_S = 5.0
# A user who waits this long wants to know what for.
QUIET_S = 2.0
# `timeout` and others send a signal to a process and to its group: that is one wish.
SAME_SIGNAL_S = 1.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NotAMessage(Exception):
    """Fathom said something that is no message of this protocol."""


@dataclass
class Host:
    """The agent of a host, with what is still to be said to it."""

    link: Link
    queue: deque[bytes] = field(default_factory=deque)
    has_queued: asyncio.Event = field(default_factory=asyncio.Event)
    has_said_all: asyncio.Event = field(default_factory=asyncio.Event)
    is_gone: bool = False


def message_to_agent(line: bytes) -> tuple[str, bytes]:
    """The host and the line for its agent in a line of fathom's.

    These lines are small, so they are parsed and written anew, in ASCII.
    """
    try:
        message = json.loads(line)
        host, said = message["host"], message["line"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAMessage from error
    if not isinstance(host, str) or not isinstance(said, dict):
        raise NotAMessage
    return host, json.dumps(said, separators=(",", ":")).encode("ascii")


def message_to_fathom(host: str, key: str, value: bytes) -> bytes:
    """A message with a value that is JSON already, because a trial has megabytes."""
    start = f'{{"host":{json.dumps(host)},"{key}":'
    return b"".join((start.encode("ascii"), value, b"}\n"))


class Router:
    """One invocation of fathom, and the agents of its hosts."""

    def __init__(self, links: Sequence[Link], fathom: str, words: Sequence[str]) -> None:
        """Starts nothing. `words` are those behind `fathom`, without `--hosts`."""
        self._hosts = {link.host: Host(link) for link in links}
        self._fathom = fathom
        self._words = list(words)
        self._process: asyncio.subprocess.Process | None = None
        self._shares_group = False
        self._signaled_at: dict[int, float] = {}
        self._early_signal: signal.Signals | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._writing = asyncio.Lock()
        self._errands: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """From the start of fathom to the end of all agents. Returns fathom's exit code."""
        loop = asyncio.get_running_loop()
        caught = [sig for sig in SIGNALS if signal.getsignal(sig) != signal.SIG_IGN]
        for sig in caught:
            loop.add_signal_handler(sig, self._on_signal, sig)
        try:
            with tempfile.TemporaryDirectory(prefix="fathom-hosts-", dir=_short_folder()) as folder:
                return await self._run_in(Path(folder))
        finally:
            for sig in caught:
                loop.remove_signal_handler(sig)

    async def _run_in(self, folder: Path) -> int:
        connection: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        connection = asyncio.get_running_loop().create_future()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if connection.done():
                writer.close()  # Exactly one connection is accepted.
            else:
                connection.set_result((reader, writer))

        path = folder / "router"  # The folder has mode 0700: nobody else can connect.
        server = await asyncio.start_unix_server(connected, path, limit=CHUNK_BYTES)
        process = await self._start_fathom(path)
        ended = asyncio.create_task(_wait(process))
        either: list[asyncio.Future[Any]] = [connection, ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        server.close()
        if connection.done():
            reader, self._writer = connection.result()
            try:
                await self._route(reader, ended)
            finally:
                self._writer.close()
        status = await ended
        return status if status >= 0 else 128 - status

    async def _start_fathom(self, path: Path) -> asyncio.subprocess.Process:
        cut = self._words.index("--") if "--" in self._words else len(self._words)
        words = [*self._words[:cut], "--hosts", str(path), *self._words[cut:]]
        # In the foreground of a terminal, fathom has to be of our process group to be able to use
        # it, and gets a Ctrl-C by itself. Elsewhere it gets each signal from us, and only once.
        self._shares_group = is_foreground()
        try:
            self._process = await asyncio.create_subprocess_exec(
                self._fathom, *words, start_new_session=not self._shares_group
            )
        except OSError as error:
            problem = f"cannot be run ({error.strerror})"
            raise Refusal(self._fathom, problem, "set --fathom to the path of fathom") from error
        if self._early_signal is not None:
            self._process.send_signal(self._early_signal)
        return self._process

    async def _route(self, reader: asyncio.StreamReader, ended: asyncio.Task[int]) -> None:
        """From the first line to fathom's goodbye, and then to the end of all agents."""
        hello = {"router": 1, "hosts": list(self._hosts)}
        self._write(json.dumps(hello, separators=(",", ":")).encode() + b"\n")
        agents = [
            asyncio.create_task(self._attend(host), name=name) for name, host in self._hosts.items()
        ]
        hearing = asyncio.create_task(self._hear_fathom(reader))
        try:
            either: list[asyncio.Future[Any]] = [hearing, ended]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            # What fathom said last can still be in the socket.
            await asyncio.wait({hearing}, timeout=LAST_WORDS_S)
        finally:
            self._leave_fathom()
            await self._end_agents(agents)
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _hear_fathom(self, reader: asyncio.StreamReader) -> None:
        """Passes on what fathom says, until it closes the connection."""
        splitter = LineSplitter()
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                for line in splitter.feed(chunk):
                    self._pass_on(*message_to_agent(line))
        except (NotAMessage, LineTooLong):
            _note(f"{self._fathom} does not speak version 1 of the router's protocol: update it")
        except OSError:
            return  # Fathom died in the middle of a line.

    def _pass_on(self, name: str, line: bytes) -> None:
        host = self._hosts.get(name)
        if host is None:
            raise NotAMessage
        if host.is_gone:
            return  # Fathom will hear so in a moment.
        if len(host.queue) >= QUEUE_LINES_MAX:
            why = f"the agent was given up: it did not take {QUEUE_LINES_MAX} messages in a row"
            self._give_up(host, why)
            return
        host.queue.append(line)
        host.has_said_all.clear()
        host.has_queued.set()

    async def _attend(self, host: Host) -> None:
        """Stays with an agent until it is gone, and tells fathom so."""
        saying: asyncio.Task[None] | None = None
        why: str | None = None
        try:
            await host.link.start()
            saying = asyncio.create_task(self._say(host))
            while why is None:
                lines, why = await host.link.hear()
                for line in lines:
                    await self._on_line(host, line)
        except LinkLost as lost:
            why = str(lost)
        except Exception as fault:  # Otherwise fathom would wait for this host for ever.
            why = f"fathom-hosts itself failed ({plain(repr(fault))[:300]}): please report this"
        finally:
            if saying is not None:
                saying.cancel()
        self._tell_gone(host, why)

    async def _say(self, host: Host) -> None:
        while True:
            if not host.queue:
                host.has_said_all.set()
            await host.has_queued.wait()
            host.has_queued.clear()
            lines = list(host.queue)
            host.queue.clear()
            try:
                await host.link.say(lines)
            except LinkLost as lost:
                self._tell_gone(host, str(lost))
                return

    async def _on_line(self, host: Host, line: bytes) -> None:
        line = line.rstrip(b"\r")
        if host.is_gone or not line:
            return
        # To parse a trial would take longer than to route it, so no more is known of it than this.
        if not (line.startswith(b"{") and line.endswith(b"}")):
            text = plain(line[:80].decode("utf-8", "replace"))
            remedy = "make sure that the login shell there prints nothing, and that it runs fathom"
            self._give_up(host, f"it said '{text}', which is no line of an agent: {remedy}")
            return
        await self._tell(host, message_to_fathom(host.link.host, "line", line))

    def _give_up(self, host: Host, why: str) -> None:
        """For fathom the agent is gone. It is ended, and heard until it is really gone."""
        self._tell_gone(host, why)
        self._errands.add(asyncio.create_task(_quietly(host.link.end())))

    def _tell_gone(self, host: Host, why: str) -> None:
        if host.is_gone:
            return
        host.is_gone = True
        host.queue.clear()
        host.has_said_all.set()
        self._write(message_to_fathom(host.link.host, "gone", json.dumps(why).encode()))

    async def _tell(self, host: Host, message: bytes) -> None:
        """Waits while fathom reads too slowly. One agent at a time adds to what it is to read."""
        async with self._writing:
            if host.is_gone:
                return  # It was given up in the meantime. Nothing comes after that.
            self._write(message)
            try:
                if self._writer is not None:
                    await self._writer.drain()
            except OSError:
                self._leave_fathom()

    def _write(self, message: bytes) -> None:
        """Never waits. Once fathom has left, what it would be told is dropped."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(message)

    def _leave_fathom(self) -> None:
        """Closes the connection at once, so that nothing waits for fathom to read any more."""
        if self._writer is not None:
            self._writer.transport.abort()

    async def _end_agents(self, agents: Sequence[asyncio.Task[None]]) -> None:
        """Ends the stdin of all agents, waits for them, and kills what is left."""
        endings = [asyncio.create_task(self._end(host)) for host in self._hosts.values()]
        _, open_ones = await asyncio.wait(agents, timeout=QUIET_S)
        if open_ones:
            names = [task.get_name() for task in agents if not task.done()]
            shown = ", ".join(names[:8]) + (" and more" if len(names) > 8 else "")
            _note(f"waits up to {GRACE_S:.0f} s for the agents of {shown}. Ctrl-C kills them")
            _, open_ones = await asyncio.wait(agents, timeout=ENDING_S - QUIET_S)
        if open_ones:
            self._kill_agents()
            await asyncio.wait(agents, timeout=5.0)
        others = [*agents, *endings, *self._errands]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _end(self, host: Host) -> None:
        try:
            await asyncio.wait_for(host.has_said_all.wait(), LAST_WORDS_S)
        except asyncio.TimeoutError:
            pass
        await _quietly(host.link.end())

    def _kill_agents(self) -> None:
        self._errands |= {
            asyncio.create_task(_quietly(host.link.kill())) for host in self._hosts.values()
        }

    def _on_signal(self, sig: signal.Signals) -> None:
        """Passes a signal on to fathom, which ends the loads in an orderly way.

        When fathom has ended, nothing is left to do in an orderly way.
        """
        now = asyncio.get_running_loop().time()
        is_same = now - self._signaled_at.get(sig, -SAME_SIGNAL_S) < SAME_SIGNAL_S
        self._signaled_at[sig] = now
        process = self._process
        if process is None:
            self._early_signal = sig
            return
        if is_same:
            return
        if process.returncode is not None:
            self._kill_agents()
            return
        # The terminal sends Ctrl-C to all of its foreground group, and its own end to all of it.
        is_of_terminal = sig == signal.SIGHUP or (sig == signal.SIGINT and is_foreground())
        if not (self._shares_group and is_of_terminal):
            process.send_signal(sig)


def _short_folder() -> str | None:
    """The folder for temporary files, or /tmp if the path of a socket in it would be too long."""
    usual = os.fsencode(tempfile.gettempdir())
    return "/tmp" if len(usual) + len("/fathom-hosts-12345678/router") > SOCKET_BYTES_MAX else None


async def _wait(process: asyncio.subprocess.Process) -> int:
    return await process.wait()


async def _quietly(call: Coroutine[object, object, None]) -> None:
    """Ends or kills an agent. If the connection to it broke, it ends by itself."""
    try:
        await call
    except LinkLost:
        return


def _note(text: str) -> None:
    print(f"fathom-hosts: {text}.", file=sys.stderr)
