"""``freshet explain URL``: show what the store knows of a URL, and its next visit."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from freshet.config.settings import Settings
from freshet.crawler.cli import history, options
from freshet.crawler.cli.options import DEFAULT_DB, AnyUrl, ConfigFile, Db, Json, read_settings
from freshet.crawler.run import terminal
from freshet.crawler.run.explanation import Explanation, facts_of, next_visit_lines, read
from freshet.crawler.run.forecast import PageForecast, Rate
from freshet.crawler.run.terminal import moment, print_json, show_facts, show_line, show_list
from freshet.storage.queries import page
from freshet.storage.tables.claims import HeardClaim


def explain_command(
    url: AnyUrl, db: Db = DEFAULT_DB, config: ConfigFile = None, json: Json = False
) -> None:
    """Show when a page is visited next, and why.

    Nothing is fetched: the stored robots.txt is used.
    """
    settings, _ = read_settings(config, {})
    urls, db = terminal.spellings(url), options.home_of(db, url, config)
    explanation, ahead, rate = terminal.run(_read(db, urls, settings))
    if json:
        found = {"prospect": ahead and asdict(ahead), "change_rate": rate and asdict(rate)}
        print_json(explanation.as_json() | found)
    else:
        _print(explanation, next_visit_lines(explanation, ahead, rate, db))


async def _read(
    db: Path, urls: Sequence[str], settings: Settings
) -> tuple[Explanation, PageForecast | None, Rate | None]:
    async with page.snapshot(db) as connection:
        return await read(connection, urls, settings, time.time())


def _print(it: Explanation, lines: Iterable[str]) -> None:
    show_line(it.url, "bold")
    for line in lines:
        show_line(line)
    for title, facts in facts_of(it).items():
        show_facts(title, facts)
    show_list(
        "Change signals (time of the last change, by the source's clock)",
        ("source", "changed", "received"),
        [
            (f"{c.kind} {c.url}", _claimed(c, it.at), moment(c.received_at, it.at))
            for c in it.claims
        ],
    )
    show_list("Last observations", history.HEADER, [history.row(o, it.at) for o in it.observations])


def _claimed(claim: HeardClaim, now: float) -> str:
    since = moment(claim.since, now)
    return since if claim.since == claim.until else f"{since} to {moment(claim.until, now)}"
