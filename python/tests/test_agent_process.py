"""The process of an agent, with small scripts in place of fathom."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine

import pytest

from conftest import LONG_S
from fathom_hosts import agent_process
from fathom_hosts.agent_process import AgentProcess, plain, why_it_ended


def in_time(call: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(call, LONG_S))


def script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


async def all_of(agent: AgentProcess) -> tuple[list[bytes], str]:
    heard: list[bytes] = []
    why = None
    while why is None:
        lines, why = await agent.hear(0.2)
        heard += lines
    return heard, why


def test_a_program_that_does_not_exist_is_the_reason() -> None:
    async def check() -> None:
        agent = AgentProcess(["/nowhere/fathom", "agent"], {}, None)
        await agent.start()
        await agent.say([b"{}"])
        await agent.end()
        await agent.kill()
        why = "the agent could not be started: /nowhere/fathom: No such file or directory"
        assert await all_of(agent) == ([], why)

    in_time(check())


def test_all_complete_lines_come_before_the_reason() -> None:
    async def check() -> None:
        text = "import sys; print('{}\\n' * 30000 + '{\"half', end=''); sys.exit('no\\x07 disk')"
        agent = AgentProcess(script(text), {1: "Do this"}, None)
        await agent.start()
        heard, why = await all_of(agent)
        assert heard == [b"{}"] * 30000
        assert why == "the agent ended with exit status 1. Do this; it said: no  disk"

    in_time(check())


def test_an_agent_that_is_not_heard_waits_and_nothing_is_lost() -> None:
    async def check() -> None:
        text = "import sys\nfor i in range(200): print(str(i) * 100000)\nsys.stdin.read()"
        agent = AgentProcess(script(text), {}, None)
        await agent.start()
        await asyncio.sleep(1.0)
        assert agent._heard_bytes < agent_process.HEARD_BYTES_MAX + (1 << 20)
        await agent.end()
        heard, _ = await all_of(agent)
        assert heard == [str(i).encode() * 100000 for i in range(200)]

    in_time(check())


def test_what_does_not_end_with_its_stdin_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_process, "GRACE_S", 0.5)

    async def check() -> None:
        agent = AgentProcess(script("import time; time.sleep(1000)"), {}, None)
        await agent.start()
        await agent.end()
        assert await all_of(agent) == ([], "the agent was killed by signal 9 (SIGKILL)")

    in_time(check())


def test_an_agent_that_nobody_hears_is_ended() -> None:
    async def check() -> None:
        agent = AgentProcess(script("import sys; sys.stdin.read(); sys.exit(4)"), {}, 0.5)
        await agent.start()
        assert agent._attending is not None
        await agent._attending
        assert await all_of(agent) == ([], "the agent ended with exit status 4")

    in_time(check())


def test_a_child_of_the_agent_that_keeps_its_pipes_open_does_not_keep_it_alive() -> None:
    async def check() -> None:
        agent = AgentProcess(["sh", "-c", "sleep 1000 & echo $!; exit 3"], {}, None)
        await agent.start()
        (pid, *_), why = await all_of(agent)
        os.kill(int(pid), signal.SIGKILL)
        await asyncio.sleep(0.2)  # The loop sees the ends of the pipes.
        assert why == "the agent ended with exit status 3"

    in_time(check())


def test_an_end_before_the_start_holds() -> None:
    async def check() -> None:
        agent = AgentProcess(["cat"], {}, None)
        await agent.end()
        await agent.start()
        assert await all_of(agent) == ([], "the agent ended with exit status 0")

    in_time(check())


def test_words_from_outside_cannot_steer_a_terminal() -> None:
    assert plain("\x1b[31mred\x1b[0m\r\n\n a\tb\x9b \u202e") == "red / a b"
    why = why_it_ended(-15, b"x" * 3000 + b"last", {})
    assert len(why) <= agent_process.WHY_CHARACTERS_MAX
    assert why.startswith("the agent was killed by signal 15 (SIGTERM); it said: …x")
    assert why.endswith("last")
