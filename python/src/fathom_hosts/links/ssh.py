"""Agents on hosts that the OpenSSH client reaches. These hosts need fathom, and no Python.

The client is used as it is, with the user's own configuration, keys and known hosts.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from fathom_hosts.links.link import ProcessLink
from fathom_hosts.refusal import Refusal

# No question can be answered, and a host that is gone is noticed after some 6 s.
OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=2", "ServerAliveCountMax=3")

ADVICE = {
    255: "If ssh could not connect, make sure that `ssh -o BatchMode=yes HOST true` works",
    127: "If fathom was not found there, set --fathom-there to its path on the hosts",
    126: "If fathom could not be run there, make it executable, or set --fathom-there",
}


def ssh_links(hosts: str, options: list[str], agent: list[str]) -> list[ProcessLink]:
    """An agent for each of the hosts. The user's options come first, because the first one wins."""
    command = shlex.join(agent)
    flags = [word for option in (*options, *OPTIONS) for word in ("-o", option)]
    return [
        ProcessLink(host, ["ssh", *flags, "-T", host, "--", command], ADVICE)
        for host in host_names(hosts)
    ]


def host_names(hosts: str) -> list[str]:
    """The hosts of `HOST,HOST` or of `@FILE`, in this order."""
    names = _names_in_file(hosts[1:]) if hosts.startswith("@") else hosts.split(",")
    for name in names:
        _check(name)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Refusal(f"--ssh: the host {twice[0]}", "is there twice", "give each host once")
    return names


def _names_in_file(path: str) -> list[str]:
    thing = f"--ssh: the file {path!r}"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or 'it is not in UTF-8'})"
        raise Refusal(thing, problem, "name a file with a host per line") from error
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    names = [line for line in lines if line]
    if not names:
        raise Refusal(thing, "has no host", "write a host per line")
    return names


def _check(name: str) -> None:
    """Refuses what ssh could take for an option, and what is not the name of a host."""
    thing = f"--ssh: the host {name!r}"
    if not name:
        raise Refusal("--ssh", "has an empty host", "separate the hosts with one comma each")
    if name.startswith("-") or name.rpartition("@")[2].startswith("-"):
        raise Refusal(thing, "begins with '-'", "give the name of a host, or user@host")
    if not re.fullmatch(r"[A-Za-z0-9._@:%\[\]-]+", name) or name.endswith("@"):
        remedy = "give a name, an address, user@host, or an alias of ~/.ssh/config"
        raise Refusal(thing, "is not the name of a host", remedy)
