"""From the words of the command line to the links and the router."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn

from fathom_hosts import __version__
from fathom_hosts.links.link import Link
from fathom_hosts.links.local import local_links
from fathom_hosts.links.ssh import ssh_links
from fathom_hosts.refusal import Refusal
from fathom_hosts.router import Router

# What runs over many hosts, and the command of fathom that does it.
COMMANDS = {
    "run": "run",
    "sweep": "sweep",
    "peak": "peak",
    "sustain": "sustain",
    "resume": "resume",
    "check": "plan",
}

EXIT_REFUSED = 2

USAGE = "fathom-hosts COMMAND (--ssh HOSTS | --local N | --scheduler ADDRESS) [WORDS OF FATHOM...]"

DESCRIPTION = """\
Run one experiment of fathom over many hosts. COMMAND is run, sweep, peak, sustain or resume; check
shows what each host would do, and starts nothing (`fathom plan`). All options that are not listed
here, and all targets, go to `fathom COMMAND` on this machine. It tells the agent of each host what
to do, shows what they measure, and writes the result."""

EXAMPLES = """\
examples:
  fathom-hosts run --local 2 sim:ssd --duration 10s
  fathom-hosts run --ssh host1,host2 /mnt/shared/data --queue-depth 16
  fathom-hosts check --ssh @hosts.txt --fathom-there /opt/fathom /dev/nvme0n1
  fathom-hosts run --scheduler tls://10.0.0.5:8786 --tls-ca ca.pem --tls-cert me.pem \\
      --tls-key me.key /mnt/shared/data"""


class Parser(argparse.ArgumentParser):
    """Ends with a refusal as every other part does."""

    def error(self, message: str) -> NoReturn:
        """Argparse has no text of its own for the remedy."""
        raise Refusal("the command line", f"is not clear ({message})", "see `fathom-hosts --help`")


@dataclass(frozen=True)
class Request:
    """What the user asked for. The command is the one of fathom."""

    command: str
    own: argparse.Namespace
    words: list[str]
    fathom: str
    agent: list[str]


def main() -> int:
    """The whole program. Returns its exit code: that of fathom, or 2 for a refusal of its own."""
    try:
        return asyncio.run(conduct(resolve(sys.argv[1:])))
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return 130  # Before fathom was started: nothing is to be ended.


async def conduct(request: Request) -> int:
    """Places the agents and runs fathom."""
    async with place(request) as links:
        return await Router(links, request.fathom, [request.command, *request.words]).run()


@asynccontextmanager
async def place(request: Request) -> AsyncIterator[Sequence[Link]]:
    """The links to the agents. No agent runs before the router starts it."""
    own = request.own
    if own.local is not None:
        yield local_links(own.local, request.agent)
    elif own.ssh is not None:
        yield ssh_links(own.ssh, own.ssh_option, request.agent)
    else:
        # Imported only here: it takes a second, and neither ssh nor local agents need it.
        try:
            from fathom_hosts.links.cluster import Tls, cluster_links
        except ImportError as error:
            remedy = "install it here: pip install dask distributed cloudpickle"
            raise Refusal("--scheduler", f"needs Dask ({error})", remedy) from error

        files = (own.tls_ca, own.tls_cert, own.tls_key)
        tls = Tls(*files) if all(files) else None
        async with cluster_links(own.scheduler, tls, request.agent) as links:
            yield links


def resolve(argv: Sequence[str]) -> Request:
    """Checks the words and finds fathom. Nothing is started before all is clear."""
    parser = make_parser()
    if not argv or argv[0] in ("-h", "--help"):
        parser.parse_args(["--help"])
    if argv[0] == "--version":
        parser.parse_args(["--version"])
    command, words = argv[0], list(argv[1:])
    if command not in COMMANDS:
        remedy = f"begin with one of {', '.join(COMMANDS)}, and give options after it"
        raise Refusal(repr(command), "is no command that runs over many hosts", remedy)
    # What is behind `--` is fathom's in any case, and argparse would take the `--` away.
    cut = words.index("--") if "--" in words else len(words)
    own, unknown = parser.parse_known_args(words[:cut])
    words = [*unknown, *words[cut:]]
    check(own, words)
    fathom = find_fathom(own.fathom)
    there = own.fathom_there or (fathom if own.local is not None else "fathom")
    agent = [there, "agent"]
    for option, value in (("--results", own.agent_results), ("--lease", own.lease)):
        if value is not None:
            agent.append(f"{option}={value}")
    return Request(COMMANDS[command], own, words, fathom, agent)


def check(own: argparse.Namespace, words: Sequence[str]) -> None:
    """Refuses options that contradict each other."""
    ways = {"--ssh": own.ssh, "--local": own.local, "--scheduler": own.scheduler}
    given = [way for way, value in ways.items() if value is not None]
    if not given:
        remedy = "give one of --ssh, --local and --scheduler"
        raise Refusal("the command line", "does not say where the agents run", remedy)
    if len(given) > 1:
        raise Refusal(" and ".join(given), "exclude each other", "give one of them")
    files = {"--tls-ca": own.tls_ca, "--tls-cert": own.tls_cert, "--tls-key": own.tls_key}
    named = [option for option, value in files.items() if value is not None]
    if named and given != ["--scheduler"]:
        raise Refusal(named[0], f"has no meaning with {given[0]}", "leave it out")
    if named and len(named) < len(files):
        raise Refusal(named[0], "is not enough", f"give all of {', '.join(files)}")
    for option, path in files.items():
        if path is not None and not os.access(path, os.R_OK):
            raise Refusal(f"{option}: the file {path}", "cannot be read", "name a file in PEM form")
    if own.ssh_option and own.ssh is None:
        raise Refusal("--ssh-option", f"has no meaning with {given[0]}", "leave it out")
    before = words[: words.index("--")] if "--" in words else words
    if any(word == "--hosts" or word.startswith("--hosts=") for word in before):
        raise Refusal("--hosts", "is set by fathom-hosts itself", "leave it out")


def find_fathom(given: str | None) -> str:
    """The fathom of this machine, by its full path."""
    wanted = given or os.environ.get("FATHOM_BIN") or "fathom"
    found = shutil.which(wanted)
    if found is None:
        remedy = "install fathom, or set --fathom or FATHOM_BIN to its path"
        raise Refusal(f"the program {wanted}", "does not exist or cannot be run", remedy)
    return os.path.abspath(found)


def make_parser() -> argparse.ArgumentParser:
    """The options of fathom-hosts. None of them may have the name of an option of fathom's."""
    parser = Parser(
        prog="fathom-hosts",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--version", action="version", version=f"fathom-hosts {__version__}")
    add("--ssh", metavar="HOSTS", help="agents on these hosts: HOST,user@HOST or @FILE, by ssh")
    add(
        "--ssh-option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an option of ssh, as behind its -o; can be given several times",
    )
    add("--local", metavar="N", help="N agents on this machine, to try it")
    add("--scheduler", metavar="ADDRESS", help="agents on the workers of this Dask cluster")
    add("--tls-ca", metavar="FILE", help="the certificate authority of the cluster")
    add("--tls-cert", metavar="FILE", help="the certificate that the cluster knows this user by")
    add("--tls-key", metavar="FILE", help="the key of this certificate")
    add("--fathom", metavar="PATH", help="fathom on this machine [default: FATHOM_BIN, or fathom]")
    add(
        "--fathom-there",
        metavar="PATH",
        help="fathom on the hosts [default: fathom; with --local that of this machine]",
    )
    add("--agent-results", metavar="FOLDER", help="the folder of results on each host")
    add(
        "--lease",
        metavar="TIME",
        help="an agent ends if it hears nothing for this long [default: 5s]",
    )
    return parser
