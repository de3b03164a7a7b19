"""The router between a fake fathom and fake agents on this machine."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from conftest import LONG_S, Bench, until
from fathom_hosts.router import NotAMessage, message_to_agent, message_to_fathom


def line_from(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_lines_go_to_their_host_and_back_in_order(bench: Bench) -> None:
    code, (hello, seen), err = bench.run("run", "--local", "3", "echo")
    assert (code, err) == (0, "")
    assert hello == {"router": 1, "hosts": ["local-1", "local-2", "local-3"]}
    assert seen == {host: list(range(50)) for host in hello["hosts"]}


def test_fathom_gets_all_other_words_and_its_exit_code_counts(bench: Bench) -> None:
    words = ["--lease", "9s", "--agent-results", "/tmp/a b", "args", "--x", "-q4", "--", "--local"]
    code, said, _ = bench.run("sweep", "--local", "1", *words)
    assert code == 7
    assert said[0]["line"]["args"] == ["agent", "--results=/tmp/a b", "--lease=9s"]
    command, *before, hosts, path, dashes, behind = said[1]["argv"]
    assert (command, before) == ("sweep", ["args", "--x", "-q4"])
    assert (hosts, dashes, behind) == ("--hosts", "--", "--local")
    assert not Path(path).parent.exists()


def test_lines_of_many_megabytes_pass_whole(bench: Bench) -> None:
    code, said, _ = bench.run("run", "--local", "2", "big")
    assert code == 0
    assert sorted(one["host"] for one in said) == ["local-1", "local-2"]
    assert all(one["is_whole"] for one in said)


def test_each_end_of_an_agent_is_told_once_and_the_others_go_on(bench: Bench) -> None:
    code, (exited, died, spoke, still), _ = bench.run("run", "--local", "4", "ends")
    assert code == 0
    assert exited.startswith("the agent ended with exit status 3; it said: …")
    assert exited.endswith("yEND") and "\x1b" not in exited and len(exited) <= 500
    assert died == "the agent was killed by signal 9 (SIGKILL)"
    assert spoke.startswith("it said 'Welcome to host c', which is no line of an agent: ")
    assert still == {"do": "echo", "still": True}


def test_a_host_that_does_not_read_is_given_up_and_the_others_do_not_wait(bench: Bench) -> None:
    code, (end,), _ = bench.run("run", "--local", "2", "slow")
    assert code == 0
    assert end["gone"].startswith("the agent was given up: it did not take 1000 messages")
    assert end["answers"] > 900


def test_what_fathom_says_last_reaches_the_agents(bench: Bench) -> None:
    bench.environment["NOTES"] = str(bench.folder / "notes-")
    code, _, _ = bench.run("run", "--local", "2", "last_words")
    assert code == 0
    for host in ("local-1", "local-2"):
        assert (bench.folder / f"notes-{host}").read_text().split() == list(map(str, range(200)))


def test_a_fathom_that_is_killed_has_the_exit_code_of_its_signal(bench: Bench) -> None:
    assert bench.run("run", "--local", "2", "killed")[0] == 137


def test_a_fathom_that_refuses_starts_no_agent(bench: Bench) -> None:
    assert bench.run("run", "--local", "2", "refuse") == (2, [], "error: no such target\n")


def test_a_fathom_of_another_protocol_is_let_go(bench: Bench) -> None:
    code, said, err = bench.run("run", "--local", "1", "nonsense")
    assert (code, said) == (6, ["closed"])
    assert "does not speak version 1 of the router's protocol" in err


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_once(bench: Bench, sig: signal.Signals) -> None:
    process = bench.start("run", "--local", "1", "signals", start_new_session=True)
    assert line_from(process) == "ready"
    # As `timeout` does it: to the process, and to its whole group.
    process.send_signal(sig)
    os.killpg(process.pid, sig)
    out, _ = process.communicate(timeout=LONG_S)
    assert json.loads(out) == [sig]
    assert process.returncode == 130


def test_a_ctrl_c_in_a_terminal_reaches_fathom_once_and_no_agent(bench: Bench) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(bench.folder)
        os.execve(sys.executable, bench.argv("run", "--local", "1", "signals"), bench.environment)
    shown = b""

    def read() -> None:
        nonlocal shown
        try:
            while chunk := os.read(terminal, 4096):
                shown += chunk
        except OSError:
            return  # So a terminal says that its last process has ended.

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: b'"ready"' in shown, "the fake fathom to be ready")
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    reader.join(LONG_S)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"[2]" in shown and b"killed" not in shown


def test_a_signal_kills_the_agents_that_are_left_when_fathom_has_ended(bench: Bench) -> None:
    process = bench.start("run", "--local", "1", "hang")
    assert process.stderr is not None
    assert "waits up to 35 s for the agents of local-1" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LONG_S)
    assert process.returncode == 5


def test_agents_and_fathom_end_when_the_router_is_killed(bench: Bench) -> None:
    process = bench.start("run", "--local", "3", "wait")
    for _ in range(3):
        line_from(process)
    process.kill()
    process.communicate(timeout=LONG_S)
    until(lambda: not bench.leftover(), "the agents to end")


def test_what_is_no_message_is_told_apart() -> None:
    assert message_to_agent(b'{"host":"a","line":{"x":[1,"\xc3\xbc"]}}') == (
        "a",
        b'{"x":[1,"\\u00fc"]}',
    )
    wrong = (
        b"",
        b"{",
        b"[]",
        b"1",
        b'{"host":"a"}',
        b'{"host":1,"line":{}}',
        b"\xff",
        b"[" * 99999,
    )
    for line in (*wrong, b'{"host":"a","line":[]}'):
        with pytest.raises(NotAMessage):
            message_to_agent(line)


def test_a_line_is_embedded_byte_for_byte() -> None:
    line = b'{ "a" : 1.0e2,"b":"\xc3\xbc" }'
    assert message_to_fathom('h"', "line", line) == b'{"host":"h\\"","line":' + line + b"}\n"
