"""A real nginx on loopback for the crawl benchmark: one address for each site, one port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

_START_LIMIT_S = 10.0
_OK = frozenset({"200", "304"})
_ROBOTS = "/robots.txt"


class NoNginx(Exception):
    """nginx is missing or does not start; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running nginx and its access log."""

    origins: tuple[str, ...]
    log: Path
    version: str

    def seeds(self) -> list[str]:
        """The front page of every site."""
        return [f"{origin}/index.html" for origin in self.origins]

    def position(self) -> int:
        """Where the log ends now."""
        return self.log.stat().st_size

    def requests_since(self, position: int) -> Requests:
        """What was asked for since the log ended there."""
        with self.log.open("rb") as log:
            log.seek(position)
            return parse_log(log.read().decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Requests:
    """What a crawler asked for: ``pages`` are the distinct URLs that answered 200 or 304."""

    count: int
    pages: frozenset[str]
    not_modified: int
    other_answers: int


def parse_log(text: str) -> Requests:
    """Read lines of status, address and path; robots.txt is no page, a query part of one."""
    lines = [line.split(" ", 2) for line in text.splitlines()]
    asked = [(status, address + path) for status, address, path in lines if path != _ROBOTS]
    return Requests(
        len(lines),
        frozenset(url for status, url in asked if status in _OK),
        sum(status == "304" for status, _ in asked),
        sum(status not in _OK for status, _ in asked),
    )


def configuration(sites: Sequence[Path], addresses: Sequence[str], port: int) -> str:
    """An nginx.conf with relative paths for its own files; pages are compressed as usual."""
    servers = "\n".join(
        f"  server {{ listen {address}:{port}; root {_quoted(site)}; {_ROBOTS_RULES} }}"
        for site, address in zip(sites, addresses, strict=True)
    )
    # The worker of a master that root started would not be let into the directory.
    user = "user root;\n" if os.geteuid() == 0 else ""
    temporary = "\n".join(
        f"  {kind}_temp_path temporary;"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""{user}daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 2048; }}
http {{
{temporary}
  types {{ text/html html htm; application/xhtml+xml xhtml; text/plain txt; }}
  log_format exchange '$status $server_addr $request_uri';
  access_log access.log exchange;
  sendfile on;
  tcp_nopush on;
  gzip on;
  gzip_types text/plain application/xhtml+xml;
{servers}
}}
"""


#: A file such as many sites have: everything but a few places is allowed.
_ROBOTS_RULES = (
    f"location = {_ROBOTS} {{ return 200 "
    '"User-agent: *\\nDisallow: /cgi-bin/\\nDisallow: /search\\nDisallow: /*?print=\\n"; }'
)


def _quoted(path: Path) -> str:
    return '"{}"'.format(str(path).replace("\\", "\\\\").replace('"', '\\"'))


@contextmanager
def serving(sites: Sequence[Path], directory: Path) -> Iterator[Served]:
    """Serve the sites until the block ends.

    Raises:
        NoNginx: it is not installed, or it ended at once.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise NoNginx("nginx is not installed: apt-get install nginx")
    addresses = [f"127.0.0.{n + 2}" for n in range(len(sites))]
    port = _free_port(addresses)
    configured = directory / "nginx.conf"
    configured.write_text(configuration(sites, addresses, port), "utf-8")
    command = [program, "-p", str(directory), "-c", str(configured), "-e", "error.log"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_start(process, (addresses[-1], port), directory / "error.log")
        origins = tuple(f"http://{address}:{port}" for address in addresses)
        yield Served(origins, directory / "access.log", _version(program))
    finally:
        process.terminate()
        process.wait()


def _free_port(addresses: Sequence[str]) -> int:
    """A port that is free on all the addresses."""
    while True:
        sockets = [socket.socket() for _ in addresses]
        try:
            sockets[0].bind((addresses[0], 0))
            port = int(sockets[0].getsockname()[1])
            with suppress(OSError):
                for other, address in zip(sockets[1:], addresses[1:], strict=True):
                    other.bind((address, port))
                return port
        finally:
            for each in sockets:
                each.close()


def _await_start(process: subprocess.Popen[bytes], place: tuple[str, int], log: Path) -> None:
    until = monotonic() + _START_LIMIT_S
    while monotonic() < until and process.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(place):
            return
        sleep(0.02)
    said = log.read_text("utf-8", "replace").strip() if log.exists() else ""
    raise NoNginx(f"nginx did not start: {said[-500:]}")


def _version(program: str) -> str:
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr
    return said.strip().rpartition("/")[2]
