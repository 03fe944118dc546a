"""``freshet doctor``: check the machine, the settings and the store before a crawl."""

import platform
import pyexpat
import resource
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.errors import NoSuchHost, ParserLost
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.run import terminal
from freshet.crawler.run.hooks import EXAMINATIONS
from freshet.crawler.run.network import Network, user_agent
from freshet.crawler.run.terminal import counted, print_json, relative, show_line, show_list, size
from freshet.crawler.urls import origin
from freshet.entry_points import loaded
from freshet.storage import maintenance
from freshet.storage.database import reading
from freshet.storage.errors import StoreError
from freshet.storage.stores import is_folder, open_stores
from freshet.storage.tables import runs

# -- checks ------------------------------------------------------------------
#: Warn below this free space, or below a tenth of the store.
_LITTLE_SPACE: Final = 1_000_000_000
_NO_SPACE: Final = 50_000_000
#: A write-ahead log of this size has not been checkpointed for long.
_LARGE_WAL: Final = 256_000_000
#: The clock may be this far behind the newest observation.
_CLOCK_SLACK_S: Final = 120.0
#: 2026-01-01, before Freshet existed.
_EPOCH: Final = 1_767_225_600.0
#: Open files besides one connection per concurrent request.
_OTHER_FILES: Final = 64
_NAMES: Final = 3
_PAGE: Final = b"<title>A page</title><p>One paragraph.</p>"

#: Libraries that parse foreign data: the first version without known faults, and the faults.
_SOUND: Final = {
    "expat": ((2, 7, 2), "small XML documents that take gigabytes or hours (CVE-2025-59375)"),
    "SQLite": ((3, 50, 2), "damage to memory by a foreign store (CVE-2025-6965)"),
}

#: The result of a check.
CheckStatus = Literal["fine", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class _CheckResult:
    """Result of one check; ``advice`` is what to do about it."""

    check: str
    status: CheckStatus
    found: str
    advice: str | None = None


async def examine(
    settings: Settings, db: Path, now: float, *, thorough: bool = False
) -> list[_CheckResult]:
    """Run all checks in a sensible order."""
    names, newest_at, findings = await _stores(db, thorough=thorough)
    return [
        versions({"expat": pyexpat.version_info, "SQLite": sqlite3.sqlite_version_info}),
        *findings,
        disk(db),
        clock(now, newest_at),
        contact(settings.crawl.product, settings.crawl.contact),
        *await _dns(settings, names),
        files(settings.crawl.concurrent_requests, resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        await _parser(),
        *[
            _CheckResult(*found)
            for examining in loaded(EXAMINATIONS).values()
            for found in await examining(settings, now)
        ],
    ]


def versions(libraries: Mapping[str, tuple[int, ...]]) -> _CheckResult:
    """Return the versions, with a warning about libraries that have known faults."""
    numbers = {name: ".".join(map(str, version)) for name, version in libraries.items()}
    named = ", ".join(f"{name} {number}" for name, number in numbers.items())
    found = f"Freshet {__version__}, Python {platform.python_version()}, {named}"
    faults = [
        f"{name} {numbers[name]} has known faults ({faults}): update to "
        f"{'.'.join(map(str, sound))}, which comes with the system or a newer Python"
        for name, (sound, faults) in _SOUND.items()
        if libraries[name] < sound
    ]
    if not faults:
        return _CheckResult("versions", "fine", found)
    return _CheckResult("versions", "warning", found, "; ".join(faults))


async def _stores(
    db: Path, *, thorough: bool
) -> tuple[list[str], float | None, list[_CheckResult]]:
    """Return the same as :func:`_store`, for all shards together."""
    stores = open_stores(db)
    parts = [await _store(path, thorough=thorough) for path in stores.paths]
    if stores.shards is None:
        return parts[0]
    findings = [
        replace(each, check=f"shard {number}: {each.check}")
        for number, (_, _, found) in enumerate(parts)
        for each in found
    ]
    names = list(dict.fromkeys(name for some, _, _ in parts for name in some))
    return names, max((at for _, at, _ in parts if at is not None), default=None), findings


async def _store(db: Path, *, thorough: bool) -> tuple[list[str], float | None, list[_CheckResult]]:
    """Return some host names of the site list, the time of the newest observation, and findings."""
    if not db.exists():
        words = f"{db} does not exist yet"
        if is_folder(db.parent):
            advice = "it is lost, unless this shard has not run yet: restore it from a backup"
            return [], None, [_CheckResult("store", "problem", words, advice)]
        return [], None, [_CheckResult("store", "warning", words, "a first crawl makes it")]
    try:
        found = await maintenance.examine(db, thorough=thorough)
        async with reading(db) as connection:
            urls = [seed.root_url or seed.url for seed in await runs.load(connection)]
    except StoreError as error:
        return [], None, [_CheckResult("store", "problem", str(error))]
    names = list(dict.fromkeys(origin(url).host for url in urls))
    return names, found.newest_at, [soundness(found), log(found)]


def soundness(found: maintenance.StoreHealth) -> _CheckResult:
    """Check the integrity of SQLite and the tables."""
    if found.problems:
        advice = "restore a backup, or salvage it with `sqlite3 FILE .recover`"
        return _CheckResult("store", "problem", "; ".join(found.problems[:3]), advice)
    run = f"; run {found.open_run} has not ended" if found.open_run is not None else ""
    words = f"sound: {size(found.size_bytes)}, {counted(found.pages, 'page')}{run}"
    return _CheckResult("store", "fine", words)


def log(found: maintenance.StoreHealth) -> _CheckResult:
    """Check that the write-ahead log is checkpointed."""
    words = f"{size(found.wal_bytes)} wait in the write-ahead log"
    if found.wal_bytes < _LARGE_WAL:
        return _CheckResult("log", "fine", words)
    advice = "a process that never closes the store prevents checkpoints; end it"
    return _CheckResult("log", "warning", words, advice)


def disk(db: Path) -> _CheckResult:
    """Check that the disk has room for the store."""
    folder = db.absolute() if is_folder(db) else db.absolute().parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    store = db.stat().st_size if db.exists() else 0
    words = f"{size(free)} free in {folder}"
    if free < _NO_SPACE:
        return _CheckResult("disk", "problem", words, "a crawl would stop soon; free some space")
    if free < max(_LITTLE_SPACE, store // 10):
        return _CheckResult("disk", "warning", words, "a growing store may need more")
    return _CheckResult("disk", "fine", words)


def clock(now: float, newest_at: float | None) -> _CheckResult:
    """Check that the clock can be right, because change rates are learnt from times."""
    if now < _EPOCH:
        return _CheckResult("clock", "problem", "it is before 2026", "set the clock")
    if newest_at is None:
        return _CheckResult("clock", "fine", "no observation to compare it with")
    words = f"newest observation: {relative(newest_at, now)}"
    if newest_at > now + _CLOCK_SLACK_S:
        advice = "the clock was set back, or was wrong then; set it"
        return _CheckResult("clock", "problem", words, advice)
    return _CheckResult("clock", "fine", words)


def contact(product: str, address: str) -> _CheckResult:
    """Check that webmasters can find a contact."""
    if address:
        return _CheckResult("contact", "fine", user_agent(product, address))
    advice = "set crawl.contact in freshet.toml to a page about your crawler"
    return _CheckResult("contact", "warning", "none: only this machine can be crawled", advice)


async def _dns(settings: Settings, hosts: Iterable[str]) -> list[_CheckResult]:
    """Check that some names of the site list resolve."""
    names = [host for host in hosts if not _is_local(host)][:_NAMES]
    if not names:
        return [_CheckResult("DNS", "fine", "no host of the site list needs it")]
    network = Network(settings, SteadyClock())
    try:
        return [await _lookup(network, name) for name in names]
    finally:
        await network.close()


async def _lookup(network: Network, name: str) -> _CheckResult:
    try:
        addresses = await network.resolver.addresses(name)
    except NoSuchHost:
        return _CheckResult("DNS", "warning", f"{name}: the host does not exist")
    except OSError as error:
        advice = "see /etc/resolv.conf and the network"
        return _CheckResult("DNS", "problem", f"{name}: {error}", advice)
    return _CheckResult("DNS", "fine", f"{name}: {', '.join(map(str, addresses[:2]))}")


def _is_local(host: str) -> bool:
    """Return whether a host is an IP address or localhost, which need no DNS."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True


def files(exchanges: int, limit: int) -> _CheckResult:
    """Check that every concurrent request can have a connection."""
    words = f"{limit:,} files may be open; {exchanges:,} concurrent requests"
    if limit != resource.RLIM_INFINITY and limit < exchanges + _OTHER_FILES:
        wanted = exchanges + _OTHER_FILES
        advice = f"raise it with `ulimit -n {wanted}`, or lower crawl.concurrent_requests"
        return _CheckResult("limits", "problem", words, advice)
    return _CheckResult("limits", "fine", words)


async def _parser() -> _CheckResult:
    """Check that the parser process for large pages starts."""
    parser = Parser(inline_bytes=0)
    try:
        parsed = await parser.parse(_PAGE, "http://localhost/", "text/html")
    except ParserLost as error:
        return _CheckResult("parser", "problem", str(error))
    finally:
        await parser.close()
    if isinstance(parsed, Unparsable):
        return _CheckResult("parser", "problem", parsed.reason)
    return _CheckResult("parser", "fine", "the process for large pages works")


_MARKS = {"fine": "ok", "warning": "note", "problem": "PROBLEM"}


def doctor_command(
    db: Db = DEFAULT_DB,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Also compare every index of the store; slow.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Check the store, disk, clock, DNS, contact and limits.

    Exit code 1 if there is a problem that would make a crawl fail or lose data.
    """
    settings, _ = read_settings(config, {})
    findings = terminal.run(examine(settings, db, time.time(), thorough=thorough))
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings, db)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)


def _print(findings: list[_CheckResult], db: Path) -> None:
    show_list(
        f"Freshet on this machine, with {db}",
        ("check", "", "found"),
        [(each.check, _MARKS[each.status], each.found) for each in findings],
    )
    advised = [each for each in findings if each.advice]
    if not advised:
        show_line("Nothing to do.", "green")
    for each in advised:
        show_line(f"{each.check}: {each.advice}", "yellow")
