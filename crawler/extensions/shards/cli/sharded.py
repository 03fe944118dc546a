"""A crawl or a daemon on a sharded store: ``--shards N``, or ``--db FOLDER`` of one."""

import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST
from rich.live import Live as LiveDisplay
from rich.table import Table

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler.cli.progress import watching
from freshet.crawler.errors import CrawlError, needs_extra
from freshet.crawler.read.api import StoreApi, pages_of
from freshet.crawler.run import terminal
from freshet.crawler.run.crawl import CrawlOrder, Live
from freshet.crawler.run.logs import LogFormat
from freshet.crawler.run.orders import CrawlReport, DaemonOrder, Reread, summed
from freshet.crawler.run.outages import handling_reload_signals
from freshet.crawler.run.service import NotifySocket
from freshet.crawler.run.terminal import amount, counted, err, fail, say, span
from freshet.crawler.run.wiring import Observer
from freshet.crawler.service import http, metrics
from freshet.scheduler import PolicyError
from freshet.storage.database import SHARDS_FILE, answer, held, store_errors
from freshet.storage.shards import Shards
from freshet.storage.stores import is_folder

if TYPE_CHECKING:
    from freshet.crawler.extensions.shards.ray_actors import Cluster, ShardState

#: Of more shards only the sums are shown.
_ROWS = 24
_LOGGED_S = 60.0


def run_sharded(
    db: Path,
    settings: Settings,
    order: CrawlOrder | DaemonOrder,
    *,
    shards: int | None,
    address: str | None,
    quiet: bool,
    verbose: bool,
    reread: Reread | None = None,
) -> CrawlReport:
    """Run the order on all shards, and return the sum of their reports.

    At SIGHUP it is ``reread``.
    """
    if settings.politeness.key == "ip":
        fail("politeness.key = ip: hosts of one address may be in several shards; "
             "with --shards it must be host or domain", 2)  # fmt: skip
    owner, per_day = "freshet", 1.0
    if isinstance(order, DaemonOrder):
        with terminal.told_in_one_line():
            owner, per_day = "daemon", order.given_budget
    if find_spec("ray") is None:
        fail(needs_extra("--shards", "ray"))
    with terminal.told_in_one_line(), err.status("starting Ray") as status:
        made = Shards.read(db) if is_folder(db) else Shards(db, shards or 1)
        made.require_settled()
        made.write()
        if address is None:
            # Read when Ray is imported. Others on this machine may not read it, as they might the
            # file that Ray would make.
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
        from freshet.crawler.extensions.shards.ray_actors import (  # noqa: PLC0415 - slow, and an extra
            Cluster,
            ClusterLibrary,
            ShardedJob,
            connected,
        )

        log_format = _log_format(settings)
        job = ShardedJob(
            shards=made, settings=settings, order=order,
            watching=partial(_in_actor, verbose=verbose, log_format=log_format),
        )  # fmt: skip
        with (
            store_errors(db),
            closing(held(db / SHARDS_FILE, owner)) as lock,
            connected(address, db),
        ):
            status.stop()
            cluster = Cluster(job, per_day)
            with _shown(quiet=quiet, as_json=log_format == "json") as show:
                # On one machine the stores are read where they lie, as verbs do.
                library = None if address is None else ClusterLibrary(cluster, db, settings)
                api = StoreApi(db, settings, library)
                work = _run(cluster, show, lock, reread, api=api, settings=settings)
                reports = terminal.run(work)
    if not reports:
        fail("stopped before any shard began; run the same command again")
    return summed(reports)


@asynccontextmanager
async def _listening(cluster: "Cluster", api: StoreApi, settings: Settings) -> AsyncIterator[None]:
    """Answer over HTTP for all shards while the block runs, if the settings name an address."""
    operation = settings.operation
    if operation.endpoint is None:
        yield
        return

    async def services() -> tuple[dict[int, Any], dict[int, str]]:
        return await cluster.each("service", dict.fromkeys(cluster.states, ()))

    async def health() -> http.Health:
        found, down = await services()
        return http.of_shards({shard: it[0] for shard, it in found.items()}, down)

    async def measured(_request: object) -> http.Answer:
        texts = {shard: text for shard, (_, text) in (await services())[0].items()}
        return http.whole(metrics.of_shards(texts), CONTENT_TYPE_LATEST)

    registry = metrics.process_metrics(__version__)
    server = http.HttpServer(
        operation, health, registry, [web.get("/metrics", measured)], pages_of(api, settings)
    )
    try:
        say("listening:", "green", await http.listening(server, operation))
        yield
    finally:
        await server.close()
        await api.close()


async def _run(
    cluster: "Cluster",
    show: Callable[[Mapping[int, "ShardState"]], None],
    lock: IO[bytes],
    reread: Reread | None,
    *,
    api: StoreApi,
    settings: Settings,
) -> list[CrawlReport]:
    manager = NotifySocket(os.environ, os.getpid())
    begun = False

    def told(states: Mapping[int, "ShardState"]) -> None:
        nonlocal begun
        show(states)
        manager.alive()
        if not begun and (begun := any(state.lease for state in states.values())):
            manager.ready(_words(states))

    def reload() -> None:
        if reread is None:
            return
        try:
            cluster.reload(reread)
        except (CrawlError, PolicyError) as error:
            say("not reloaded:", "yellow", f"{error}; the shards go on with their old settings")
            answer(lock, "daemon", f"refused: {error}")
        else:
            say("reloaded:", "green", "each shard follows when its requests under way have ended")
            answer(lock, "daemon", f"reloaded: {len(cluster.states)} shards")

    with handling_reload_signals() as at_reload_signals:
        at_reload_signals(reload)
        async with _listening(cluster, api, settings):
            return await cluster.run(told)


@contextmanager
def _in_actor(*, verbose: bool, log_format: LogFormat) -> Iterator[Callable[[Live], Observer]]:
    """Yield what observes the run of a shard, inside its actor."""
    from freshet.crawler.cli import collect_in_steps, return_freed_memory  # noqa: PLC0415 - see there

    return_freed_memory()
    collect_in_steps()
    # Ray adds a field to each record.
    logging.setLogRecordFactory(logging.LogRecord)
    with watching(quiet=True, verbose=verbose, log_format=log_format) as watch:
        yield watch


def _log_format(settings: Settings) -> LogFormat:
    """Return the format of log lines: for people on a terminal, unless the settings name one."""
    named = settings.operation.log_format
    if named != "auto":
        return named
    return "console" if err.is_terminal else "json"


@contextmanager
def _shown(*, quiet: bool, as_json: bool) -> Iterator[Callable[[Mapping[int, "ShardState"]], None]]:
    """Yield a function that shows the states of all shards, and their log lines."""
    began = logged_at = time.monotonic()
    down = dict[int, str]()

    def told(states: Mapping[int, "ShardState"]) -> None:
        nonlocal logged_at
        for shard, state in states.items():
            for line in state.lines:
                sys.stderr.write(_line(shard, line, as_json=as_json) + "\n")
            _tell_outage(shard, state.why, down.get(shard, ""))
            down[shard] = state.why
        if not err.is_terminal and not quiet and time.monotonic() >= logged_at + _LOGGED_S:
            logged_at = time.monotonic()
            sys.stderr.write(f"{_words(states)}\n")

    if quiet or not err.is_terminal:
        yield told
        return
    with LiveDisplay(console=err, refresh_per_second=4, transient=True) as display:

        def show(states: Mapping[int, "ShardState"]) -> None:
            told(states)
            display.update(_table(states, time.monotonic() - began))

        yield show


def _tell_outage(shard: int, why: str, before: str) -> None:
    """Say that a shard is down, and why, or that it is up again; both are empty while it is up."""
    if why and why != before:
        say("down:", "yellow", f"shard {shard}: {why}; the others go on")
    elif before and not why:
        say("up:", "green", f"shard {shard}")


def _line(shard: int, line: str, *, as_json: bool) -> str:
    with suppress(ValueError):
        if as_json and isinstance(found := json.loads(line), dict):
            return json.dumps(found | {"shard": shard})
    return f"shard {shard}: {line}"


def _words(states: Mapping[int, "ShardState"]) -> str:
    kinds = sum((Counter(state.kinds) for state in states.values()), Counter[str]())
    fetches = sum(state.fetches for state in states.values())
    parts = [
        f"{number:,} {kind}"
        for kind in ("changed", "new", "gone", "failed")
        if (number := kinds[kind])
    ]
    up = sum(not state.why for state in states.values())
    return "  ".join([f"{up} of {len(states)} shards  {counted(fetches, 'request')}", *parts])


def _table(states: Mapping[int, "ShardState"], seconds: float) -> Table:
    """Return the sums, and below them a row for each shard."""
    title = f"{_words(states)}  {span(seconds)}"
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left", expand=True)
    for name in ("shard", "requests", "pages", "a day", "price"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    table.add_column("next", no_wrap=True, overflow="ellipsis", ratio=1)
    for shard, state in list(states.items())[:_ROWS]:
        begins = "" if state.lease else "starting"
        waits = "waits for the others" if state.idle else ""
        cells = [
            str(shard), f"{state.fetches:,}", f"{state.pages:,}",
            "" if state.share is None else amount(state.share),
            "" if state.price is None else f"{state.price:.3g}",
            state.why or begins or state.next_url or waits,
        ]  # fmt: skip
        table.add_row(*cells)
    return table
