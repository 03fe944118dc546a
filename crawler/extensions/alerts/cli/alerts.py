"""``freshet alerts``: the alert rules, their messages, test messages and retries."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from sqlite3 import Connection
from typing import Annotated, TypeVar

import typer

from freshet.config.settings import Settings, shown
from freshet.crawler.cli import options
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.alerts import tables as alerts
from freshet.crawler.extensions.alerts.messages import MessageComposer, stored_importances, trial
from freshet.crawler.extensions.alerts.outbox import Outbox
from freshet.crawler.extensions.alerts.rules import channels, receiver
from freshet.crawler.extensions.alerts.settings import Alerts
from freshet.crawler.extensions.alerts.tables import Message, RuleCounts, key_of
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.run import terminal
from freshet.crawler.run.logs import configure_logging
from freshet.crawler.run.network import Network, parser_of, with_kept
from freshet.crawler.run.terminal import counted, print_json, show_line, show_list, when
from freshet.storage.database import open_store, write_beside
from freshet.storage.queries import page
from freshet.storage.stores import Stores

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """A rule and the state of its messages; ``mode`` is None if the rule has left the settings."""

    kinds: tuple[str, ...]
    mode: str | None
    target: str | None
    counts: RuleCounts

    def as_json(self) -> dict[str, object]:
        """Return the rule as JSON values."""
        about = {"kinds": self.kinds, "mode": self.mode, "target": self.target}
        return {"rule": self.counts.rule} | about | asdict(self.counts)


def alerts_command(
    db: Db = DEFAULT_DB,
    test: Annotated[
        str | None, typer.Option("--test", metavar="RULE", help="Send a test message now.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Send messages that were given up, or that wait, again.")
    ] = False,
    send: Annotated[
        bool, typer.Option("--send", help="Send due messages now; a running daemon does so itself.")
    ] = False,
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop",
            metavar="RULE",
            help="Remove a rule that has left the settings, with its unsent messages.",
        ),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show alert rules and their messages; test or send them.

    The settings have the rules (`alerts.rules`); a crawl and a daemon send their messages.
    """
    settings, _ = read_settings(config, {})
    configure_logging(settings.operation.log_format, verbose=False)
    if test is not None:
        terminal.run(send_test(settings, test))
        show_line(f"{test}: the receiver accepted the test message")
        return
    if drop is not None:
        with terminal.told_in_one_line():
            _drop(db, settings, drop)
    if retry:
        again = partial(alerts.requeue, rule=None, now=time.time())
        with terminal.told_in_one_line():
            count = sum(_beside(options.stores_at(db), again))
        show_line(f"{counted(count, 'message')} will be sent again")
    if send:
        terminal.run(options.stores_at(db).each(partial(_send, settings=settings)))
    counts, down = options.read_each(db, _counts)
    found = rule_statuses(counts, settings)
    if json:
        print_json({"rules": [each.as_json() for each in found]} | down)
    else:
        _print(found, time.time())


async def send_test(settings: Settings, name: str) -> None:
    """Send a test message; raises CrawlError if it is refused, or for an unknown rule."""
    channel = next((each for each in channels(settings.group(Alerts)) if each.name == name), None)
    if channel is None:
        raise CrawlError(f"alerts.rules: there is no rule {name}; `freshet alerts` lists them")
    clock = SteadyClock()
    async with AsyncExitStack() as stack:
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        to = receiver(channel, settings, network.resolver, clock)
        stack.push_async_callback(to.close)
        now = clock.now()
        key = key_of("test", name, now)
        message = Message(0, key, name, trial(name, now), since=now, tries=0, next_at=now)
        answer = await to.deliver(message, now)
    if answer.outcome != "taken":
        raise CrawlError(
            f"{name}: {channel.target} refused the message: {answer.said}; check its url in "
            "alerts.rules"
        )


def _drop(db: Path, settings: Settings, name: str) -> None:
    """Forget a rule, and print its discarded messages."""
    if any(rule.name == name for rule in settings.group(Alerts).rules):
        raise CrawlError(
            f"alerts.rules: {name} is in the settings; remove it there and run `freshet reload`"
        )
    stores = options.stores_at(db)
    told = _beside(stores, partial(alerts.drop, rule=name))
    if not (dropped := [each for each in told if each is not None]):
        options.tell_down(db, stores.down)
        raise CrawlError(
            f"{db}: there are no alerts of a rule {name}; `freshet alerts` lists the rules"
        )
    (stood,) = alerts.merged([dropped])
    unsent = f"{counted(stood.waiting, 'alert')} and {counted(stood.pending, 'message')} unsent"
    show_line(f"{name}: rule removed; discarded: {unsent}, {stood.failed:,} given up")


def _beside(stores: Stores, work: Callable[[Connection], T]) -> list[T]:
    """Do some work in each store that can be written."""

    async def done(path: Path) -> T:
        return write_beside(path, work)

    return list(terminal.run(stores.each(done)).values())


async def _send(db: Path, settings: Settings) -> None:
    wanted = channels(settings.group(Alerts))
    clock = SteadyClock()
    async with AsyncExitStack() as stack:
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        if not db.exists():
            raise CrawlError(f"{db}: there is no such file; --db names the store")
        database = await open_store(db, owner="alerts")
        stack.push_async_callback(database.close)
        parser = parser_of(settings)
        stack.push_async_callback(parser.close)
        importances = stored_importances(database, await with_kept(settings, database.reader))
        composing = MessageComposer(database, parser, importances, clock, settings)
        outbox = Outbox(
            database=database, composing=composing,
            receiver_of=lambda each: receiver(each, settings, network.resolver, clock),
            limits=settings.group(Alerts), clock=clock, rng=Random(),
        )  # fmt: skip
        outbox.obey(settings.group(Alerts), wanted)
        stack.push_async_callback(outbox.close)
        await outbox.send_due()


async def _counts(db: Path) -> list[RuleCounts]:
    """Return the counts; a try that is due has no time: it is made when a crawl or daemon runs."""
    now = time.time()
    async with page.snapshot(db) as connection:
        return [
            replace(each, next_at=None if each.next_at is None else _coming(each.next_at, now))
            for each in await alerts.counts(connection)
        ]


def _coming(at: float, now: float) -> float | None:
    return at if at > now else None


def _next_try(counts: RuleCounts, now: float) -> str | None:
    due = "in the next crawl or daemon" if counts.pending else None
    return when(counts.next_at, now) or due


def rule_statuses(counts: Iterable[Sequence[RuleCounts]], settings: Settings) -> list[RuleStatus]:
    """Return the rules, with what several stores count together; last those that were removed."""
    stand = {each.rule: each for each in alerts.merged(counts)}
    none = RuleCounts(
        rule="", waiting=0, pending=0, sent=0, failed=0, sent_at=None, next_at=None, answer=None
    )
    found = [
        RuleStatus(
            rule.kinds or settings.group(Alerts).kinds,
            rule.mode or settings.group(Alerts).mode,
            shown(rule.url),
            stand.pop(rule.name, replace(none, rule=rule.name)),
        )
        for rule in settings.group(Alerts).rules
    ]
    return found + [RuleStatus((), None, None, each) for each in stand.values()]


def _print(found: list[RuleStatus], now: float) -> None:
    if not found:
        show_line("No alerts: add [[alerts.rules]] to freshet.toml (docs/guide/alerts.md).")
        return
    show_list(
        "Alerts",
        ("rule", "pages", "when", "to", "waiting", "pending", "sent", "given up", "last sent"),
        [
            (
                each.counts.rule, ", ".join(each.kinds) or None, each.mode or "not in the settings",
                each.target, each.counts.waiting, each.counts.pending, each.counts.sent,
                each.counts.failed,
                when(each.counts.sent_at, now),
            )
            for each in found
        ],
    )  # fmt: skip
    for each in found:
        if each.mode is None:
            show_line(
                f"{each.counts.rule} is not in the settings any more; "
                f"`freshet alerts --drop {each.counts.rule}` removes it",
                "yellow",
            )
    show_list(
        "Refused",
        ("rule", "why", "next try"),
        [
            (counts.rule, counts.answer, _next_try(counts, now))
            for counts in (each.counts for each in found)
            if counts.answer is not None
        ],
    )
