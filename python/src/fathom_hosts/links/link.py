"""What the router needs from a connection to an agent, whatever it is made of."""

from __future__ import annotations

from typing import Protocol

from fathom_hosts.agent_process import AgentProcess

PATIENCE_S = 1.0


class LinkLost(Exception):
    """The connection to an agent broke. The text says why, for people."""


class Link(Protocol):
    """The agent of one host. Each method may raise `LinkLost`."""

    @property
    def host(self) -> str:
        """The name of the host. It is unique."""

    async def start(self) -> None:
        """Starts the agent. A failure to start is the reason that `hear` gives."""

    async def say(self, lines: list[bytes]) -> None:
        """Says lines to the agent."""

    async def hear(self) -> tuple[list[bytes], str | None]:
        """The next lines, if any came, and the reason for the end of the agent."""

    async def end(self) -> None:
        """Ends the agent's stdin. Some time later, what is left of the agent is killed."""

    async def kill(self) -> None:
        """Kills the agent at once."""


class ProcessLink:
    """An agent whose stdin and stdout are those of a process here: the agent itself, or `ssh`."""

    def __init__(self, host: str, argv: list[str], advice: dict[int, str]) -> None:
        """`advice` has the remedy for an exit status."""
        self.host = host
        self.argv = argv
        self._agent = AgentProcess(argv, advice, alone_s=None)

    async def start(self) -> None:
        """See `Link`."""
        await self._agent.start()

    async def say(self, lines: list[bytes]) -> None:
        """See `Link`."""
        await self._agent.say(lines)

    async def hear(self) -> tuple[list[bytes], str | None]:
        """See `Link`."""
        return await self._agent.hear(PATIENCE_S)

    async def end(self) -> None:
        """See `Link`."""
        await self._agent.end()

    async def kill(self) -> None:
        """See `Link`."""
        await self._agent.kill()
