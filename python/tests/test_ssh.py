"""Agents by ssh: with a script in its place, and with a real server on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import MARKER, Bench, skip, until
from fathom_hosts.links.ssh import host_names, ssh_links
from fathom_hosts.refusal import Refusal


def test_hosts_come_from_words_or_a_file_in_order(tmp_path: Path) -> None:
    assert host_names("b,root@a,10.0.0.1,[::1]") == ["b", "root@a", "10.0.0.1", "[::1]"]
    file = tmp_path / "hosts"
    file.write_text("# mine\n b \n\nuser@a # the second\n")
    assert host_names(f"@{file}") == ["b", "user@a"]


@pytest.mark.parametrize(
    "hosts",
    ["", "a,,b", "-oProxyCommand=x", "u@-x", "a,b,a", "a b", "a;b", "a/b", "u@", "@/nowhere"],
)
def test_what_is_no_host_is_refused(hosts: str) -> None:
    with pytest.raises(Refusal, match="--ssh"):
        host_names(hosts)


def test_the_command_has_only_what_the_user_gave() -> None:
    (link,) = ssh_links("u@h", ["Port=7"], ["/opt/my fathom", "agent", "--results=$HOME"])
    assert link.argv == [
        *("ssh", "-o", "Port=7", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
        *("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3"),
        *("-T", "u@h", "--", "'/opt/my fathom' agent '--results=$HOME'"),
    ]


def test_agents_answer_by_a_fake_ssh(bench: Bench) -> None:
    folder = bench.folder / "bin"
    folder.mkdir()
    fake = folder / "ssh"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\nexec sh -c "$1"\n')
    fake.chmod(0o755)
    bench.environment["PATH"] = f"{folder}:{bench.environment['PATH']}"
    words = ["--fathom-there", str(bench.fake)]
    code, (hello, seen), _ = bench.run("run", "--ssh", "b,a", *words, "echo")
    assert code == 0
    assert hello["hosts"] == ["b", "a"]
    assert seen == {"b": list(range(50)), "a": list(range(50))}


class Server:
    """An sshd of a user's own, with keys of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        for key in ("host_key", "key"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(make, check=True)
        (folder / "authorized").write_text((folder / "key.pub").read_text())
        (folder / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPidFile none\nUsePAM no\n"
            f"PermitRootLogin yes\nAcceptEnv {MARKER}\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        assert sshd is not None
        with (folder / "log").open("w") as log:
            argv = [sshd, "-D", "-e", "-f", str(folder / "config")]
            self.process = subprocess.Popen(argv, stderr=log)
        until(self.answers, "sshd to listen")

    def answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def options(self) -> list[str]:
        settings = {
            "Port": self.port,
            "IdentityFile": self.folder / "key",
            "UserKnownHostsFile": self.folder / "known",
            "StrictHostKeyChecking": "no",
            "SendEnv": MARKER,
        }
        return [w for k, v in settings.items() for w in ("--ssh-option", f"{k}={v}")]


@pytest.fixture
def server(bench: Bench) -> Iterator[Server]:
    if shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        skip("no sshd here: install openssh-server")
    server = Server(bench.folder)
    yield server
    server.process.terminate()
    server.process.wait()


def test_agents_answer_by_a_real_ssh(bench: Bench, server: Server) -> None:
    words = ["--ssh", "127.0.0.1,localhost", *server.options(), "--fathom-there", str(bench.fake)]
    code, (_, seen), _ = bench.run("run", *words, "echo")
    assert code == 0
    assert seen == {host: list(range(50)) for host in ("127.0.0.1", "localhost")}
    code, said, _ = bench.run("run", *words, "big")
    assert code == 0 and all(one["is_whole"] for one in said)


def test_what_goes_wrong_by_ssh_has_its_remedy(bench: Bench, server: Server) -> None:
    words = ["--ssh", "127.0.0.1", *server.options()]
    _, said, _ = bench.run("run", *words, "--fathom-there", "/nowhere/fathom", "gone")
    assert "exit status 127. If fathom was not found there, set --fathom-there" in said[0]
    assert "/nowhere/fathom" in said[0]
    (bench.folder / "authorized").write_text("")
    _, said, _ = bench.run("run", *words, "gone")
    assert "exit status 255. If ssh could not connect" in said[0]
    assert "Permission denied" in said[0]


def test_agents_by_ssh_end_when_the_router_is_killed(bench: Bench, server: Server) -> None:
    words = ["--ssh", "127.0.0.1", *server.options(), "--fathom-there", str(bench.fake)]
    process = bench.start("run", *words, "wait")
    assert process.stdout is not None
    assert '"args"' in process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not bench.leftover(), "the agent to end")
