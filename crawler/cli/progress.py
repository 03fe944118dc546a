"""Progress of a crawl: a live line on a terminal, log lines elsewhere."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live as LiveDisplay
from rich.table import Table
from rich.text import Text

from freshet.crawler.run.crawl import Live
from freshet.crawler.run.logs import LogFormat, configure_logging
from freshet.crawler.run.orders import DaemonSnapshot
from freshet.crawler.run.terminal import blocks, counted, err, percent, span, spending
from freshet.crawler.run.wiring import Observer
from freshet.storage.records import Acknowledged, Visit

_REFRESH_PER_S = 4
_LOG_EVERY_S = 10.0
_COUNT_EVERY_S = 3.0
_REASONS_SHOWN = 3
_CHANGES_SHOWN = 5
_STYLES = {"changed": "green", "gone": "yellow", "failed": "red"}

log = structlog.get_logger("freshet")


@contextmanager
def watching(
    *, quiet: bool, verbose: bool, log_format: LogFormat = "auto"
) -> Iterator[Callable[[Live], Observer]]:
    """Yield a function that makes the progress display of a crawl; ``quiet`` shows nothing."""
    configure_logging(log_format, verbose=verbose)
    if quiet or verbose or not err.is_terminal or log_format == "json":
        yield lambda live: _Log(live, every_page=verbose, silent=quiet and not verbose)
        return
    with LiveDisplay(console=err, refresh_per_second=_REFRESH_PER_S, transient=True) as display:

        def show(live: Live) -> Observer:
            screen = ProgressScreen(live)
            display.update(screen)
            return screen

        yield show


class _Left:
    """Number of due URLs, counted every few seconds during the crawl, and the least time left."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._started_at = live.pool.clock.now()
        self._next_at = self._started_at + 1.0
        self._counting: asyncio.Task[None] | None = None
        self.urls: int | None = None
        self.seconds = 0.0

    def refresh(self, now: float) -> None:
        """Count again if the last count is old."""
        if self._live.left is not None and now >= self._next_at:
            self._next_at = now + _COUNT_EVERY_S
            self._counting = asyncio.create_task(self._count(self._live.left, now))

    async def _count(self, count: Callable[[], Awaitable[Mapping[int, int]]], now: float) -> None:
        due = await count()
        self.urls = sum(due.values())
        # Take the longer of the hosts' delays and the speed so far.
        each_s = (now - self._started_at) / max(self._live.tally.fetches, 1)
        self.seconds = max(self._live.pool.frontier.least_s(due), self.urls * each_s)

    def __str__(self) -> str:
        return f"{self.urls:,} left, {_clock(self.seconds)} or more" if self.urls else ""


class ProgressScreen:
    """Live display: counts and rate, hosts and why they wait, the last changes."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._started_at = live.pool.clock.now()
        self._changes: deque[Text] = deque(maxlen=_CHANGES_SHOWN)
        self._left = _Left(live)

    def __call__(self, batch: Sequence[Acknowledged]) -> None:
        """Add a committed batch."""
        self._left.refresh(self._live.pool.clock.now())
        for item in batch:
            entry = item.entry
            if isinstance(entry, Visit) and entry.observation.kind == "changed":
                self._changes.append(_change_line(entry))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the current lines."""
        now = self._live.pool.clock.now()
        table = Table.grid(padding=(0, 1))
        # Leave room for the ^C that the terminal writes behind the last line.
        table.width = options.max_width - 4
        if self._live.snapshot is None:
            table.add_row(self._counts_line(now))
            table.add_row(Text(self._hosts_line(now), style="dim"))
        else:
            snapshot = self._live.snapshot(now)
            table.add_row(self._budget_line(snapshot, now))
            line = self._next_line(snapshot, now)
            table.add_row(Text(line, style="dim", no_wrap=True, overflow="ellipsis"))
        for change in self._changes:
            table.add_row(change)
        yield table

    def _counts_line(self, now: float) -> Text:
        tally, seconds = self._live.tally, max(now - self._started_at, 1e-3)
        return Text.assemble(
            (f"{counted(tally.pages, 'page')}  ", "bold"),
            f"{tally.fetches / seconds:,.1f} fetches/s  ",
            *self._results("changed", "gone", "failed", "refused"),
            f"{_clock(seconds)}  ",
            (str(self._left), "bold"),
            _requisites(self._live),
        )

    def _budget_line(self, snapshot: DaemonSnapshot, now: float) -> Text:
        """Describe the requests that a daemon spent, and their results."""
        stale = None if snapshot.outlook is None else snapshot.outlook.stale
        return Text.assemble(
            (f"{spending(snapshot.spent, int(snapshot.flowed), 'requests spent')}  ", "bold"),
            "" if stale is None else f"{percent(1 - stale)} fresh  ",
            *self._results("changed", "new", "gone", "failed"),
            _clock(now - self._started_at),
        )

    def _results(self, *kinds: str) -> Iterator[tuple[str, str]]:
        """Yield each count above 0 with its style."""
        for kind in kinds:
            if count := self._live.tally.kinds[kind]:
                yield f"{count:,} {kind}  ", _STYLES.get(kind, "")

    def _next_line(self, snapshot: DaemonSnapshot, now: float) -> str:
        """Describe what a daemon waits for."""
        waits = self._live.pool.frontier.waits(now)
        parts = []
        if self._live.pool.stopping:
            parts.append("stopping: waiting for requests under way, Ctrl-C again to cancel them")
        elif snapshot.next_url is not None:
            wait = snapshot.next_at - now
            parts.append(f"next{f' in {span(wait)}' if wait >= 1 else ''}: {snapshot.next_url}")
        elif (pacer := self._live.pool.pacer).saves:
            saved = min(pacer.saved(now), pacer.saves)
            parts.append(f"saving requests for a crawl window: {saved:.0f} of {pacer.saves:.0f}")
        if snapshot.outlook is not None and snapshot.outlook.waiting:
            parts.append(f"{counted(snapshot.outlook.waiting, 'new page')} waiting")
        if snapshot.outlook is not None and snapshot.outlook.capped:
            parts.append(f"{counted(len(snapshot.outlook.capped), 'host')} at the cap")
        reasons = Counter(waits.values()).most_common(_REASONS_SHOWN)
        parts += [f"{counted(n, 'host')} out: {why}" for why, n in reasons]
        return "  ·  ".join(parts)

    def _hosts_line(self, now: float) -> str:
        """Describe what hosts wait for; after the last answer, the near-duplicate search."""
        if (placed := self._live.comparing.placed) is not None:
            done = counted(placed, "page")
            return f"looking for near-duplicates: {done} compared, Ctrl-C to leave the rest"
        waits = self._live.pool.frontier.waits(now)
        active = self._live.pool.frontier.active(now)
        parts = [f"{counted(active, 'host')} active"]
        wakes_at = self._live.pool.frontier.wakes_at()
        if not active and wakes_at is not None:
            parts[0] += f", the next in {max(0.0, wakes_at - now):.0f} s"
        if self._live.pool.stopping:
            parts.append("stopping: waiting for them, Ctrl-C again to cancel them")
        reasons = Counter(waits.values()).most_common(_REASONS_SHOWN)
        parts += [f"{n} {'host waits' if n == 1 else 'hosts wait'}: {why}" for why, n in reasons]
        return "  ·  ".join(parts)


def _requisites(live: Live) -> str:
    needs = live.pool.requisites
    return f"  {counted(needs.left, 'requisite')} left" if needs is not None and needs.left else ""


def _change_line(visit: Visit) -> Text:
    observation = visit.observation
    counts = ""
    if observation.blocks_added is not None:
        counts = f"  {blocks(observation.blocks_added, observation.blocks_removed)}"
    line = Text.assemble(("changed ", "green"), visit.due.url, (counts, "dim"))
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


class _Log:
    """A log line every few seconds; with ``every_page``, one for each committed visit."""

    def __init__(self, live: Live, *, every_page: bool, silent: bool) -> None:
        self._live = live
        self._every_page = every_page
        self._silent = silent
        self._next_at = live.pool.clock.now() + _LOG_EVERY_S
        self._left = _Left(live)

    def __call__(self, batch: Sequence[Acknowledged]) -> None:
        """Add a committed batch."""
        if self._every_page:
            for item in batch:
                if isinstance(item.entry, Visit):
                    _log_visit(item.entry)
        now = self._live.pool.clock.now()
        if not self._silent:
            self._left.refresh(now)
        # A daemon logs its own reports.
        if now >= self._next_at and not self._silent and self._live.snapshot is None:
            self._next_at = now + _LOG_EVERY_S
            self._log_counts()

    def _log_counts(self) -> None:
        tally = self._live.tally
        counts: dict[str, object] = {
            "pages": tally.pages, "fetches": tally.fetches, "errors": tally.errors,
            "changed": tally.kinds["changed"], "active": self._live.pool.active,
        }  # fmt: skip
        if (needs := self._live.pool.requisites) is not None:
            counts["requisites_left"] = needs.left
        if self._left.urls is not None:
            counts |= {"left": self._left.urls, "left_s": round(self._left.seconds)}
        log.info("crawling", **counts)


def _log_visit(visit: Visit) -> None:
    observation = visit.observation
    fields: dict[str, object] = {"url": visit.due.url, "kind": str(observation.kind)}
    if visit.role != "page":
        fields["role"] = str(visit.role)
    optional = {
        "rung": observation.rung, "status": observation.status, "reason": observation.reason,
        "retry_at": visit.retry_at,
    }  # fmt: skip
    fields |= {key: value for key, value in optional.items() if value is not None}
    log.info("observed", at=observation.at, **fields)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
