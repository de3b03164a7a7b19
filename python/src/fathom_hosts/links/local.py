"""Agents on this machine, to try an experiment before it goes to many hosts."""

from __future__ import annotations

from fathom_hosts.links.link import ProcessLink
from fathom_hosts.refusal import Refusal

LOCAL_MAX = 64


def local_links(number: str, agent: list[str]) -> list[ProcessLink]:
    """As many agents as the user said, named local-1 and so on."""
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= LOCAL_MAX):
        raise Refusal("--local", f"is {number!r}", f"give a number from 1 to {LOCAL_MAX}")
    return [ProcessLink(f"local-{i}", agent, {}) for i in range(1, int(number) + 1)]
