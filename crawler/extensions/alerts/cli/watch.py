"""``freshet watch``: watch pages for a price, a number, a word, or any change."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from socket import create_connection, getfqdn
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer
from pydantic import ValidationError

from freshet.config import ConfigError
from freshet.config.loading import HERE
from freshet.config.settings import Settings, SiteSettings, masked
from freshet.config.writing import amended
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli import options
from freshet.crawler.cli.check import Check, looking, parsed_page, visited
from freshet.crawler.cli.config import write_settings
from freshet.crawler.cli.contact import with_contact
from freshet.crawler.cli.progress import watching
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.extensions.alerts.receivers import LOG
from freshet.crawler.extensions.alerts.rules import channels, receiver
from freshet.crawler.extensions.alerts.settings import AlertRuleSettings, Alerts
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.reduce.blocks import compared
from freshet.crawler.reduce.numbers import NUMBER, joined, number_in, value_of
from freshet.crawler.reduce.offers import Offer
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.tree import SelectorHints
from freshet.crawler.run import terminal
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from freshet.crawler.run.terminal import counted, fail, print_json, say, show_line, show_list
from freshet.storage.database import owner_of, reading
from freshet.storage.errors import trouble
from freshet.storage.records import FetchResult
from freshet.storage.stores import is_folder
from freshet.storage.tables import runs

_HOPS: Final = 5
_SHOWN: Final = 5
_WIDTH: Final = 100
_MAIL: Final = re.compile(r"[^@\s:/]+@[^@\s:/]+")
_SMTP: Final = ("localhost", 25)
#: Default interval of a page's visits; a whole site follows the budget.
_USUAL: Final = "1 hour"


@dataclass(frozen=True, slots=True)
class WatchWish:
    """The wishes of a user: bounds of a number, a text that appears, the element that holds it."""

    below: float | None
    above: float | None
    contains: str | None
    within: str | None

    @property
    def wants_number(self) -> bool:
        """Return whether a bound is given, so that the page must show a number."""
        return self.below is not None or self.above is not None


@dataclass(frozen=True, slots=True)
class PageLook:
    """The current page: its prices, and its main text or the text of the chosen element."""

    url: str
    title: str | None = None
    offers: tuple[Offer, ...] = ()
    stated: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """A page or a site (``match`` ends in ``*``) with the choice: a number, or its text."""

    match: str
    chosen: str
    selector: str | None = None
    number: str = ""
    value: float | None = None

    @property
    def is_site(self) -> bool:
        """Return whether all pages below an address are watched."""
        return self.match.endswith("*")


# -- looking -----------------------------------------------------------------


async def look(settings: Settings, url: str, wish: WatchWish) -> PageLook:
    """Fetch a page as a crawl would and read it, without storing it.

    Raises:
        CrawlError: it cannot be fetched or read; the message gives the reason.
    """
    async with AsyncExitStack() as stack:
        parser, network, fetcher = looking(settings, stack)
        urls = terminal.spellings(url)
        await network.require_contact(urls)
        found = Check(url)
        for each in urls:
            result = await _followed(fetcher, settings, found := Check(each))
            if result is not None and result.outcome == "fetched":
                return await _read(parser, result, wish)
        last = found.steps[-1]
        raise CrawlError(
            f"{found.url}: {last.name}: {last.answer}: {last.why}; `freshet check` tells more"
        )


async def _followed(fetcher: Any, settings: Settings, found: Check) -> FetchResult | None:
    """Return the answer of a page, after its redirects."""
    result = None
    for _ in range(_HOPS):
        result = await visited(fetcher, settings, found)
        if result is None or result.outcome != "redirected" or result.location is None:
            break
        found.url = result.location
    return result


async def _read(parser: Parser, result: FetchResult, wish: WatchWish) -> PageLook:
    content_type = result.header("Content-Type")
    hints = None if wish.within is None else SelectorHints((wish.within,), strict=True)
    page = await parsed_page(parser, result, hints)
    if isinstance(page, Unparsable):
        raise CrawlError(
            f"{result.url}: it cannot be read: {page.reason}; `freshet check` tells more"
        )
    seen = PageLook(result.url, page.title, texts=tuple(page.blocks.texts))
    if hints is not None:
        if not seen.texts:
            raise CrawlError(
                f"{result.url}: --within {wish.within}: no such element has text; name another"
            )
        return seen
    prices = await parser.offers(result.body, result.url, content_type)
    if isinstance(prices, Unparsable) or wish.contains is not None:
        return seen
    # A rule must find the same values that the user sees now.
    offers = [
        offer
        for offer in prices.shown
        if offer.selector and await _reads(parser, result, offer) == offer.value
    ]
    return PageLook(seen.url, seen.title, tuple(offers), prices.stated, seen.texts)


async def _reads(parser: Parser, result: FetchResult, offer: Offer) -> float | None:
    hints = SelectorHints((offer.selector,), strict=True)
    page = await parsed_page(parser, result, hints)
    return None if isinstance(page, Unparsable) else _number_in(page.blocks.texts, offer.number)


def _number_in(texts: Sequence[str], number: str = "") -> float | None:
    before, _, behind = number.partition("*")
    return number_in(joined(texts), before, behind)


# -- choosing ----------------------------------------------------------------


def choose(page: PageLook, wish: WatchWish, *, ask: bool) -> WatchTarget:
    """Return the watched part of a page, chosen on a terminal; exit if the page lacks it."""
    if wish.within is not None:
        return _element(page, wish, wish.within)
    if wish.contains is not None:
        there = compared(wish.contains).casefold() in " ".join(page.texts).casefold()
        return WatchTarget(page.url, f"the text, which has “{wish.contains}” {_now(there)}")
    if offers := _prices(page, ask=ask):
        if (it := _chosen_price(page, offers, ask=ask)) is not None:
            words = f"{it.value:.15g} (“{it.text}” in {it.selector})"
            return WatchTarget(page.url, words, it.selector, it.number, it.value)
    elif wish.wants_number:
        fail(_nothing(page))
    elif ask:
        show_list(page.title or page.url, ("the text begins",), _beginning(page))
        typer.confirm("Watch this text?", default=True, abort=True, err=True)
    return WatchTarget(page.url, f"the text, which begins “{_short(page)}”")


def _prices(page: PageLook, *, ask: bool) -> Sequence[Offer]:
    """Return the prices that may be watched."""
    # What its data states and no element shows would be watched in vain.
    offers = [each for each in page.offers if each.is_stated or not page.stated]
    return offers or (page.offers if ask else ())


def _chosen_price(page: PageLook, offers: Sequence[Offer], *, ask: bool) -> Offer | None:
    """Return the price that the user chooses, the first one without a terminal; None: the text."""
    if ask:
        place = _asked(page, offers[:_SHOWN])
        return offers[place - 1] if place else None
    many = counted(len(page.offers), "price")
    say("no terminal:", "yellow", f"took the first of {many} on {page.url}")
    return offers[0]


def _element(page: PageLook, wish: WatchWish, selector: str) -> WatchTarget:
    value = _number_in(page.texts)
    if wish.wants_number and value is None:
        fail(
            f"{page.url}: --within {selector}: no number in “{_short(page)}”; name another element"
        )
    words = f"“{_short(page)}” in {selector}"
    if wish.wants_number:
        words = f"{value:.15g} ({words})"
    return WatchTarget(page.url, words, selector, value=value if wish.wants_number else None)


def _asked(page: PageLook, offers: Sequence[Offer]) -> int:
    """Return the place of the price that the user chooses, 0 for the whole text."""
    rows = [
        (place, f"{it.value:.15g}", it.text, it.selector, "yes" if it.is_stated else "")
        for place, it in enumerate(offers, 1)
    ]
    columns = ("", "price", "shown as", "in", "stated in the page's data")
    show_list(page.title or page.url, columns, rows)
    while True:
        place = typer.prompt(
            "Which price? (0: watch the whole text)", default=1, type=int, err=True
        )
        if 0 <= place <= len(offers):
            return int(place)
        say("watch:", "yellow", f"{place}: type a number from 0 to {len(offers)}")


def _nothing(page: PageLook) -> str:
    """Describe a page without a price."""
    if page.stated:
        prices = ", ".join(f"{each:.15g}" for each in page.stated[:_SHOWN])
        shown = ", ".join(f"“{each.text}”" for each in page.offers[:_SHOWN]) or "no price"
        instead = f"its data states {prices} (schema.org), and it shows {shown}"
    else:
        matches = (NUMBER.search(text) for text in page.texts)
        texts = [m.string for m in matches if m and value_of(m[0]) is not None][:_SHOWN]
        numbers = ", ".join(f"“{each[:40]}”" for each in texts)
        begins = f"no number; its text begins “{_short(page)}”"
        instead = f"numbers without a currency: {numbers}" if numbers else begins
    return f"{page.url}: no price to watch: {instead}; name the element with --within SELECTOR"


def _now(there: bool) -> str:
    return "now" if there else "not now"


def _short(page: PageLook) -> str:
    text = " ".join(page.texts)[:_WIDTH]
    return text if len(text) < _WIDTH else f"{text[:-1]}…"


def _beginning(page: PageLook) -> list[tuple[str]]:
    return [(text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…",) for text in page.texts[:3]]


# -- settings ----------------------------------------------------------------


def tables(
    watched: Sequence[WatchTarget], *, wish: WatchWish, settings: Settings, every: str | None,
    notify: str, daily: bool,
) -> dict[str, list[dict[str, object]]]:  # fmt: skip
    """Return the tables ``sites`` and ``alerts.rules`` to append to the settings file."""
    sites: list[dict[str, object]] = []
    rules: dict[str, dict[str, object]] = {}
    taken = {rule.name for rule in settings.group(Alerts).rules}
    for it in watched:
        sites.append(_without_none(_site_of(it, every)))
        rule = _rule_of(it, wish, notify, daily=daily)
        # One message for the pages that have one wish.
        kept = rules.setdefault(repr(rule), {"name": "", "match": []} | _without_none(rule))
        if not kept["name"]:
            kept["name"] = _name(it.match, taken)
        matches: Any = kept["match"]
        matches.append(it.match)
    return {
        "sites": [each for each in sites if len(each) > 1],
        "alerts.rules": list(rules.values()),
    }


def _site_of(it: WatchTarget, every: str | None) -> dict[str, object]:
    """Return the settings of a page or site, None without any."""
    rhythm = every or ("" if it.is_site else _USUAL)
    return {
        "match": it.match,
        "scope": None if it.is_site else "list",
        "every": rhythm or None,
        "include": [it.selector] if it.selector else None,
    }


def _rule_of(it: WatchTarget, wish: WatchWish, notify: str, *, daily: bool) -> dict[str, object]:
    """Return the rule of a page or site, without a name, or None."""
    return {
        "kinds": ["new", "changed", "gone"] if it.is_site else ["changed", "gone"],
        "url": notify,
        "mode": "daily" if daily else None,
        "appears": None if wish.contains is None else [wish.contains],
        "below": wish.below,
        "above": wish.above,
        "within": it.selector if wish.contains or wish.wants_number else None,
        "number": it.number or None,
    }


def _without_none(table: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in table.items() if value is not None}


def _name(match: str, taken: set[str]) -> str:
    """Return a new name of a rule, by the host and the end of the path; it is then taken."""
    words = re.findall(r"[A-Za-z0-9]+", match.partition("://")[2])
    name = "-".join(words)[:50].strip("-") or "page"
    free = next(each for n in count(1) if (each := name if n == 1 else f"{name}-{n}") not in taken)
    taken.add(free)
    return free


def address(text: str | None) -> str:
    """Return the receiver of alerts: a URL, ``log:`` by default. This machine sends mail.

    Exits if this machine has no mail server for a mail address.
    """
    if text is None:
        return LOG
    if not _MAIL.fullmatch(text):
        return text
    try:
        create_connection(_SMTP, timeout=5).close()
    except OSError:
        fail(
            f"--notify {text}: no mail server answers on this machine (localhost:25); name one: "
            f"--notify 'mailtos://USER:PASSWORD@mail.example.org?to={text}'",
            2,
        )
    sender = quote(f"freshet@{getfqdn()}")
    return f"mailto://localhost?from={sender}&to={quote(text)}&format=text&mode=insecure"


# -- the verb ----------------------------------------------------------------


def watch_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    context: typer.Context,
    urls: Annotated[
        list[str],
        typer.Argument(metavar="URL…", help="Pages; https://example.org/* is a whole site."),
    ],
    below: Annotated[
        float | None, typer.Option(metavar="N", help="Tell when the number falls below N.")
    ] = None,
    above: Annotated[
        float | None, typer.Option(metavar="N", help="Tell when the number rises above N.")
    ] = None,
    contains: Annotated[
        str | None, typer.Option(metavar="WORD", help="Tell when this text appears on the page.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="SELECTOR", help="Watch only the elements of this CSS selector."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help='Time between two visits, such as "1 hour", which is that of a page; a site goes '
            "by the daemon's budget.",
        ),
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where alerts go: a mail address, a webhook, or a URL of Apprise; else the log.",
        ),
    ] = None,
    daily: Annotated[
        bool, typer.Option("--daily", help="Send one message a day, not one a change.")
    ] = False,
    db: options.Db = options.DEFAULT_DB,
    contact: options.Contact = None,
    allow_private_addresses: options.PrivateAddresses = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
) -> None:
    """Watch a page for a price, a number, a word or any change.

    Freshet reads the page, shows the price that it finds (or the text) and asks; then it adds the
    page and an alert rule to the settings file (--config, else ./freshet.toml) and visits the page
    once. `freshet daemon` visits it again and again.
    """
    wish = WatchWish(below, above, contains, within)
    given = {
        "crawl.contact": contact,
        "network.allow_private_addresses": allow_private_addresses,
        "crawl.scope": options.scope_of(db, None, config),
    }
    settings, origins = options.read_settings(config, given)
    file, ask = config or HERE, terminal.asks() and not json
    make = partial(
        tables, wish=wish, settings=settings, every=every, notify=address(notify), daily=daily
    )
    _refuse_wish(urls, wish, every)
    _refuse_store(db)
    # Before anything is fetched.
    _refuse_tables(file, make([WatchTarget(_spelled(url), "", within) for url in urls]), settings)
    seeds = seeds_from_arguments([url.removesuffix("*") for url in urls]).seeds
    settings = with_contact(settings, origins, db, seeds, context)
    watched = [_chosen(settings, url, wish, ask=ask) for url in urls]
    new = make(watched)
    _refuse_tables(file, new, settings)
    report = terminal.run(_visit(_with_tables(settings, new), db, watched))
    if report.silent_seeds:
        site, why, *_ = report.silent_seeds[0]
        why = f"{why}; nothing was written to {file}; `freshet check {site}` tells more"
        fail(f"{site}: the first visit found no page: {why}")
    # Read again: it may have been edited during the visit. It may hold a mail server's password.
    with terminal.told_in_one_line():
        write_settings(file, {}, new, mode=0o600)
    if json:
        print_json({"settings": str(file), **new})
    else:
        words = ["freshet daemon"]
        words += [f"--db {db}"] if db != settings.db else []
        words += [f"--config {config}"] if config is not None else []
        _print(watched, new, " ".join(words), file)
        show_line(f"The first visit read {counted(report.pages, 'page')}.")


def _refuse_wish(urls: Sequence[str], wish: WatchWish, every: str | None) -> None:
    """Exit (wrong usage) if the wish is wrong."""
    try:
        SiteSettings(match="/*", every=every)
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        fail(f"--every {every}: {why}", 2)
    if wish.contains is not None and not wish.contains.strip():
        fail("--contains: give a text that is not blank", 2)
    if wish.within is not None:
        try:
            SelectorHints((wish.within,))
        except ValueError as error:
            fail(f"--within: {error}", 2)
    if wish.wants_number and (sites := [url for url in urls if url.endswith("*")]):
        fail(f"{sites[0]}: a number is watched on one page; give its address without *", 2)


def _refuse_store(db: Path) -> None:
    """Exit if the first visit cannot be written."""
    if is_folder(db):
        fail(f"{db}: is a folder of shards; add [[sites]] and [[alerts.rules]] to freshet.toml", 2)
    owner = owner_of(db)
    if owner is not None:
        fail(f"{db}: process {owner.process} ({owner.name}) writes it; end it, and try again")


def _spelled(url: str) -> str:
    """Return a URL as a pattern; exit if it is invalid."""
    if "*" in url.removesuffix("/*"):
        fail(f"{url}: a * stands only behind the last slash: https://example.org/*", 2)
    return terminal.spellings(url.removesuffix("*"))[0] + "*" * url.endswith("*")


def _chosen(settings: Settings, url: str, wish: WatchWish, *, ask: bool) -> WatchTarget:
    """Read a page, or the first page of a site; return the watched part; exit if it is known."""
    page = terminal.run(look(settings, url.removesuffix("*"), wish))
    if url.endswith("*"):
        it = WatchTarget(f"{page.url}*", f"all pages below {page.url}", wish.within)
    else:
        it = choose(page, wish, ask=ask)
    rules = [rule.name for rule in settings.group(Alerts).rules if it.match in rule.match]
    if rules:
        fail(f"{it.match}: the alert rule {rules[0]} watches it; change it in the settings file")
    if any(table.match == it.match for table in settings.sites):
        fail(f"{it.match}: it has a table [[sites]]; change that in the settings file")
    return it


def _with_tables(settings: Settings, new: Mapping[str, Sequence[Mapping[str, Any]]]) -> Settings:
    """Return the settings of the first visit, which raises no alert."""
    sites = (*settings.sites, *(SiteSettings(**table) for table in new["sites"]))
    return settings.model_copy(update={"sites": sites})


def _refuse_tables(file: Path, new: Mapping[str, Any], settings: Settings) -> None:
    """Exit if the settings file with these tables, or the receiver, would not be valid."""
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        amended(before, file, {}, new)
        rules = [AlertRuleSettings(**rule) for rule in new["alerts.rules"]]
    except OSError as error:
        fail(trouble(file, error), 2)
    except UnicodeDecodeError as error:
        fail(f"{file}: it is not UTF-8 at byte {error.start}; save it as UTF-8", 2)
    except ConfigError as error:
        fail(str(error), 2)
    wanted = settings.group(Alerts).model_copy(update={"rules": rules})
    terminal.run(_try_receivers(settings, wanted))


async def _try_receivers(settings: Settings, alerts: Alerts) -> None:
    """Raise UsageError if the receiver of a rule cannot be made."""
    resolver = CachingResolver()
    try:
        for channel in channels(alerts):
            await receiver(channel, settings, resolver, SteadyClock()).close()
    except CrawlError as error:
        raise UsageError(f"--notify: {error}") from error
    finally:
        await resolver.close()


async def _visit(settings: Settings, db: Path, watched: Sequence[WatchTarget]) -> CrawlReport:
    """Crawl the watched pages now, beside the rest of the store's last run."""
    seeds = seeds_from_arguments([it.match.removesuffix("*") for it in watched]).seeds
    last = None
    if db.exists():
        async with reading(db) as connection:
            last = await runs.latest(connection)
    if last is not None and last.ended_at is None and not any(it.is_site for it in watched):
        # Seeds come before the rest of that run.
        crawl_settings = settings.crawl.model_copy(update={"max_pages": len(seeds)})
        settings = settings.model_copy(update={"crawl": crawl_settings})
    order = CrawlOrder(db, seeds, resume=True if last else None)
    with watching(quiet=False, verbose=False, log_format=settings.operation.log_format) as watch:
        report = await crawl(settings, order, watch=watch)
    ours = {seed.url for seed in seeds}
    return replace(report, silent_seeds=[it for it in report.silent_seeds if it[1] in ours])


def _print(
    watched: Sequence[WatchTarget], new: Mapping[str, Any], next_words: str, file: Path
) -> None:
    every = {table["match"]: table["every"] for table in new["sites"] if "every" in table}
    rhythms = [f"every {every[it.match]}" if it.match in every else "by budget" for it in watched]
    rows = [(it.match, it.chosen, rhythm) for it, rhythm in zip(watched, rhythms, strict=True)]
    show_list("Watched", ("page", "what", "visited"), rows)
    show_line("")
    for rule in new["alerts.rules"]:
        name = rule["name"]
        to = "the daemon's log" if rule["url"] == LOG else masked(rule["url"])
        show_line(f"Alerts of the rule {name} go to {to}; `freshet alerts --test {name}` tries it")
    show_line(f"Written to {file}. Keep watching with: {next_words}", "green")
