"""A web on loopback in a process of its own (``loopback_process``), as its users see it.

Hosts differ in their address (127.0.0.0/8) and share the port. Every exchange is logged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.benchmarks.exchanges import Exchange, read_log
from scripts.benchmarks.site_contents import Calm

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Web:
    """Calm sites, all alike, on their addresses; ``attacks`` maps addresses to attacks.

    The attacks are those of ``hostile_sites``; ``bomb_mib`` is the decoded size of bombs.
    """

    calm: Calm
    addresses: Sequence[str]
    attacks: Mapping[str, str]
    bomb_mib: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, as its user sees it."""

    web: Web
    port: int
    log: Path

    def seeds(self) -> list[str]:
        """The front page of every site."""
        return [f"{self.origin(address)}/" for address in (*self.web.attacks, *self.web.addresses)]

    def origin(self, address: str) -> str:
        """Scheme, address and port."""
        return f"http://{address}:{self.port}"

    def exchanges(self) -> list[Exchange]:
        """What has been logged so far."""
        return read_log(self.log)


def addresses(count: int, network: int = 1) -> list[str]:
    """So many addresses of 127.0.``network``.0 and the following networks."""
    return [f"127.0.{network + n // 250}.{n % 250 + 1}" for n in range(count)]


@contextmanager
def serving(web: Web, log: Path) -> Iterator[Server]:
    """Serve from another process until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.benchmarks.loopback_process", str(log)],
        cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(web)) + "\n")
        process.stdin.flush()
        yield Server(web, int(process.stdout.readline()), log)
        process.stdin.close()
