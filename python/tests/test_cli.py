"""The words of the command line."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Bench
from fathom_hosts.cli import COMMANDS, Request, make_parser, place, resolve
from fathom_hosts.links.local import local_links
from fathom_hosts.refusal import Refusal


@pytest.fixture(autouse=True)
def fathom(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FATHOM_BIN", str(bench.fake))
    return str(bench.fake)


def resolved(words: str) -> Request:
    return resolve(words.split())


def test_the_words_of_fathom_keep_their_order() -> None:
    words = "/dev/a -q 4 --part read=3,b=4 -b4k --x --local-results y --s -- --ssh q --help"
    before, _, behind = words.partition(" --part")
    request = resolved(f"run --agent-results=r {before} --ssh a,b --part{behind}")
    assert request.words == words.split()
    assert request.agent == ["fathom", "agent", "--results=r"]


def test_check_is_the_plan_of_fathom() -> None:
    assert resolved("check --local 1 x").command == "plan"
    for command in ("run", "sweep", "peak", "sustain", "resume"):
        assert resolved(f"{command} --local 1 x").command == command


def test_local_agents_run_the_fathom_of_this_machine(fathom: str) -> None:
    assert resolved("run --local 1").agent == [fathom, "agent"]
    assert resolved("run --local 1 --fathom-there /x").agent == ["/x", "agent"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("quick --local 1", "'quick' is no command that runs over many hosts: begin with one of"),
        ("--local 1 run", "'--local' is no command"),
        ("plan --local 1", "'plan' is no command that runs over many hosts: begin with one of run"),
        ("run x", "the command line does not say where the agents run: give one of --ssh"),
        ("run --ssh a --local 1", "--ssh and --local exclude each other: give one"),
        ("run --local", "the command line is not clear (argument --local: expected one argument)"),
        ("run --local 1 --tls-ca x", "--tls-ca has no meaning with --local: leave it out"),
        ("run --local 1 --ssh-option x=y", "--ssh-option has no meaning with --local"),
        ("run --scheduler tls://a --tls-ca /dev/null", "--tls-ca is not enough: give all of"),
        ("run --local 1 --hosts x", "--hosts is set by fathom-hosts itself: leave it out"),
        ("run --local 1 --fathom /nowhere", "the program /nowhere does not exist or cannot be run"),
    ],
)
def test_what_is_not_possible_is_refused_with_the_remedy(words: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        resolved(words)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("number", ["0", "65", "-1", "x", "", "٣"])
def test_the_number_of_local_agents_has_limits(number: str) -> None:
    with pytest.raises(Refusal, match="give a number from 1 to 64"):
        local_links(number, ["fathom"])


def test_a_refusal_is_one_line_without_a_traceback(bench: Bench) -> None:
    code, _, err = bench.run("run", "--ssh", "-oProxyCommand=x")
    assert code == 2
    assert err.count("\n") == 1 and err.startswith("error: ")


def test_a_scheduler_without_dask_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "fathom_hosts.links.cluster", raising=False)
    request = resolved("run --scheduler tcp://127.0.0.1:1 sim:ssd")

    async def enter() -> None:
        async with place(request):
            pass

    with pytest.raises(Refusal, match=r"^--scheduler needs Dask .*: install it here: pip install"):
        asyncio.run(enter())


def test_help_names_no_option_that_fathom_has(real_fathom: str) -> None:
    ours = {word for action in make_parser()._actions for word in action.option_strings}
    for command in COMMANDS.values():
        shown = subprocess.run([real_fathom, command, "--help"], capture_output=True, text=True)
        assert shown.returncode == 0
        theirs = {word.strip(",") for word in shown.stdout.split() if word.startswith("-")}
        assert ours & theirs <= {"-h", "--help"}


def test_the_folder_is_clean(bench: Bench) -> None:
    assert [path.name for path in Path(bench.folder).iterdir()] == ["fathom"]
