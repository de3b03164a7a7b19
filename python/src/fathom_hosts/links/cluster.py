"""Agents on the workers of a Dask cluster that runs: Kubernetes, Slurm, or anything else.

One actor per host holds the agent. It is pinned to its worker and never runs again elsewhere: a
measurement that was lost is lost. Dask carries the lines and notices lost workers, and that is all
that it is used for.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import re
import warnings
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import cloudpickle
import dask
from distributed import Client, Security

from fathom_hosts import agent_process, lines
from fathom_hosts.agent_process import AgentProcess, plain
from fathom_hosts.links.link import PATIENCE_S, LinkLost
from fathom_hosts.refusal import Refusal

# A worker that does not answer for this long is lost. A large line takes a while on a slow network.
ANSWER_S = 30.0
PLACE_S = 60.0
# The least time after which Dask may call a connection dead: shorter ones broke sound hosts.
TIMEOUT_S_MIN = 12
TICK_S = 1.0

SAME_PYTHON = "Use the same versions of Python and Dask there and here"


@dataclass(frozen=True)
class Tls:
    """The files that say who we are and whom we trust."""

    ca: str
    cert: str
    key: str


@asynccontextmanager
async def cluster_links(
    address: str, tls: Tls | None, agent: list[str]
) -> AsyncIterator[list[ClusterLink]]:
    """An agent for each host of the cluster, for as long as the context lasts."""
    check_address(address, tls)
    set_up_dask()
    security = None
    if tls is not None:
        # Dask checks the other side by its certificate authority, and encrypts.
        security = Security(
            tls_ca_file=tls.ca,
            tls_client_cert=tls.cert,
            tls_client_key=tls.key,
            require_encryption=True,
        )
    thing = f"--scheduler: {address}"
    try:
        client = await Client(address, security=security, asynchronous=True, timeout=TIMEOUT_S_MIN)
    except (OSError, ValueError, RuntimeError) as error:
        problem = f"cannot be reached ({plain(str(error)) or type(error).__name__})"
        remedy = "make sure that the scheduler runs there, and that its certificates are yours"
        raise Refusal(thing, problem, remedy) from error
    try:
        workers = (await client.scheduler.identity())["workers"]
        if not workers:
            raise Refusal(thing, "has no workers", "start one worker on each host first")
        chosen = choose_workers({at: (str(w["name"]), str(w["host"])) for at, w in workers.items()})
        for worker in chosen.values():
            check_worker(worker, tls)
        await _check_python(client, set(chosen.values()))
        yield [ClusterLink(client, host, worker, agent) for host, worker in chosen.items()]
    finally:
        try:
            await asyncio.wait_for(client.close(), ANSWER_S)
        except (asyncio.TimeoutError, OSError):
            pass  # The scheduler is gone. The agents end by themselves.


def check_address(address: str, tls: Tls | None) -> None:
    """Refuses what is not encrypted beyond this machine, because anyone could start agents then."""
    thing = f"--scheduler: {address}"
    scheme = address.partition("://")[0]
    if "://" not in address or scheme not in ("tcp", "tls"):
        raise Refusal(thing, "is no address", "give tls://HOST:PORT, or tcp://127.0.0.1:PORT")
    if scheme == "tls" and tls is None:
        raise Refusal(thing, "needs certificates", "give --tls-ca, --tls-cert and --tls-key")
    if scheme == "tcp" and tls is not None:
        raise Refusal(thing, "does not use certificates", "give tls://HOST:PORT")
    if scheme == "tcp" and not is_loopback(address):
        remedy = "start the scheduler with TLS, and give tls://HOST:PORT"
        raise Refusal(thing, "is not encrypted and not on this machine", remedy)


def check_worker(address: str, tls: Tls | None) -> None:
    """The way from the scheduler to a worker has to be as safe as that to the scheduler."""
    if not address.startswith("tls://") and (tls is not None or not is_loopback(address)):
        remedy = "start the scheduler and all workers with TLS"
        raise Refusal(f"--scheduler: the worker {address}", "is not encrypted", remedy)


async def _check_python(client: Client, workers: set[str]) -> None:
    """Another Python cannot load the class of the actor, and its worker would end."""
    here = platform.python_version()
    versions: Any = await cast("Awaitable[Any]", client.get_versions())
    for worker in sorted(workers & set(versions["workers"])):
        there = str(versions["workers"][worker]["host"]["python"])
        if there.split(".")[:2] != here.split(".")[:2]:
            problem = f"has Python {there}, and this machine has {here}"
            remedy = "use the same version of Python there and here"
            raise Refusal(f"--scheduler: the worker {worker}", problem, remedy)


def is_loopback(address: str) -> bool:
    """Whether an address of Dask's is one of this machine only."""
    host = urlsplit(address).hostname or ""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


def choose_workers(workers: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """From workers (address: name, host) to one worker per host (name of the host: address).

    Several agents on one host would measure each other. The order is that of the names, with
    numbers in them as numbers, so that it is the same each time.
    """

    def order(address: str) -> tuple[list[tuple[int, str]], str]:
        parts = re.split(r"(\d+)", workers[address][0])
        return [(int(part) if part.isdigit() else -1, part) for part in parts], address

    of_host: dict[str, str] = {}
    for address in sorted(workers, key=order):
        of_host.setdefault(workers[address][1], address)
    chosen: dict[str, str] = {}
    for host, address in of_host.items():
        # Without a name of its own, a worker is named after its address and port.
        name = host if "://" in workers[address][0] else workers[address][0]
        name = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("-") or "host"
        unique, number = name, 1
        while unique in chosen:
            number += 1
            unique = f"{name}-{number}"
        chosen[unique] = address
    return chosen


def set_up_dask() -> None:
    """The settings that are the client's. docs/hosts.md has the cluster's."""
    settings: dict[str, object] = {"distributed.comm.retry.count": 0}
    for name in ("connect", "tcp"):
        key = f"distributed.comm.timeouts.{name}"
        if dask.utils.parse_timedelta(dask.config.get(key, "30s")) < TIMEOUT_S_MIN:
            settings[key] = f"{TIMEOUT_S_MIN}s"
    dask.config.set(settings)
    # The terminal is fathom's. What matters is in the reasons that hosts are gone.
    # On a busy machine asyncio tells of attempts to connect that timed out, long after others have
    # succeeded. Dask gives two of the others levels of their own.
    for name in ("asyncio", "distributed", "distributed.client", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.simplefilter("ignore")
    # Only Dask is needed on the workers: the class of the actor goes there by value.
    for module in (lines, agent_process):
        cloudpickle.register_pickle_by_value(module)


class AgentByValue:
    """`AgentProcess`, for workers on which this package is not installed.

    Dask sends a class by reference, as long as it can be imported here. This one arrives as what
    `cloudpickle` makes of the class: its code.
    """

    def __call__(self, argv: list[str], advice: dict[int, str], alone_s: float) -> AgentProcess:
        """Is called only where it was not sent: never."""
        return AgentProcess(argv, advice, alone_s)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """What pickle sends in place of this object."""
        return cloudpickle.loads, (cloudpickle.dumps(AgentProcess),)


class ClusterLink:
    """An agent that an actor on a worker holds."""

    def __init__(self, client: Client, host: str, worker: str, agent: list[str]) -> None:
        """Only notes what `start` is to do."""
        self.host = host
        self._client = client
        self._worker = worker
        self._argv = agent
        self._future: Any = None
        self._actor: Any = None
        self._is_ending = False

    async def start(self) -> None:
        """See `Link`."""
        self._future = self._client.submit(
            AgentByValue(),
            self._argv,
            {},
            ANSWER_S,
            key=f"fathom-agent-{uuid4()}",
            actor=True,
            workers=[self._worker],
            allow_other_workers=False,
            retries=0,
        )
        try:
            self._actor = await self._answer(self._future, PLACE_S)
        except LinkLost:
            raise
        except Exception as error:  # Anything: it is the worker's, and it comes by pickle.
            problem = plain(f"{type(error).__name__}: {error}")[:300]
            why = f"the worker could not hold the agent ({problem}). {SAME_PYTHON}"
            raise LinkLost(why) from error
        await self._ask("start", patience_s=PLACE_S)

    async def say(self, lines: list[bytes]) -> None:
        """See `Link`."""
        await self._ask("say", lines, patience_s=ANSWER_S)

    async def hear(self) -> tuple[list[bytes], str | None]:
        """See `Link`."""
        heard: tuple[list[bytes], str | None] = await self._ask("hear", PATIENCE_S)
        return heard

    async def end(self) -> None:
        """See `Link`."""
        self._is_ending = True
        if self._actor is not None:
            await self._ask("end")

    async def kill(self) -> None:
        """See `Link`."""
        if self._actor is not None:
            await self._ask("kill")

    async def _ask(self, method: str, *args: object, patience_s: float = ANSWER_S) -> Any:
        """Calls a method of the actor. Dask would wait forever for one on a lost worker."""
        try:
            return await self._answer(getattr(self._actor, method)(*args), patience_s)
        except LinkLost:
            raise
        except Exception as error:  # Anything: Dask passes on what it meets.
            problem = plain(f"{type(error).__name__}: {error}")[:200]
            raise LinkLost(f"{self._lost()} ({problem})") from error

    async def _answer(self, call: Awaitable[Any], patience_s: float) -> Any:
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        answer = asyncio.ensure_future(_as_coroutine(call))
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=TICK_S)
                if answer.done():
                    break
                if self._actor is not None and self._future.status != "finished":
                    raise LinkLost(self._lost())
                if self._actor is None and self._is_ending:
                    raise LinkLost("fathom ended before the agent was placed")
                if loop.time() > until:
                    why = f"the worker {self._worker} did not answer for {patience_s:.0f} s"
                    raise LinkLost(why)
            return answer.result()
        finally:
            answer.cancel()

    def _lost(self) -> str:
        return f"Dask lost the worker {self._worker}. An agent that still runs there ends by itself"


async def _as_coroutine(call: Awaitable[Any]) -> Any:
    return await call
