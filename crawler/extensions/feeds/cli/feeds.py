"""``freshet feeds``: addresses of Atom feeds, made, listed and revoked."""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from freshet.config.settings import Settings
from freshet.config.sites import StoredSite
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.cli.serve import LISTEN
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.feeds.routes import FEED, FEEDS, RULE
from freshet.crawler.read.library import Library, asking
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import fail, moment, print_json, say, show_line, show_list
from freshet.storage.tables import runs
from freshet.storage.tables.runs import SiteSetting

#: Octets of a secret.
_OCTETS: Final = 24


def feeds_command(
    match: Annotated[
        str | None,
        typer.Argument(
            metavar="SITE", help="A site or part of one, as `match` of [[sites]] has it."
        ),
    ] = None,
    rule: Annotated[str | None, typer.Option(metavar="NAME", help="The alerts of a rule.")] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke the address; the feed ends at once.")
    ] = False,
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Make, list and revoke addresses of Atom feeds for feed readers.

    Each entry has the words that changed. Who knows the address needs no token: `freshet serve`,
    or a daemon that listens, answers there. Without a site or a rule the feeds are listed.
    """
    if match is not None and rule is not None:
        fail("give a site or --rule, not both", 2)
    settings, _ = read_settings(config, {})
    wanted = f"{RULE}{rule}" if rule is not None else match
    found = terminal.run(_done(db, settings, wanted, revoke=revoke))
    base = f"http://{settings.operation.listen or LISTEN}{FEEDS}"
    told = [{"of": it.match, "url": f"{base}{it.value}", "since": it.at} for it in found]
    if json:
        print_json({"feeds": told})
    elif wanted is not None:
        say(
            "revoked:" if revoke else "feed:", "green", "".join(f"{base}{it.value}" for it in found)
        )
    else:
        _print(told)


def _print(told: Sequence[dict[str, Any]]) -> None:
    if not told:
        show_line("No feeds; `freshet feeds example.org` makes one.")
        return
    now = time.time()
    rows = [(it["of"], it["url"], moment(it["since"], now)) for it in told]
    show_list("Feeds", ("of", "address", "since"), rows)


async def _done(
    db: Path, settings: Settings, wanted: str | None, *, revoke: bool
) -> list[SiteSetting]:
    """Make or revoke the feed that is wanted; return it, or all feeds."""
    parser = parser_of(settings)
    library = Library(db, parser, settings)
    try:
        parts, _ = await library.each(lambda _: asking(runs.site_settings))
        there = {it for some in parts.values() for it in some if it.key == FEED}
        if wanted is None:
            return sorted(there)
        known = [it for it in there if it.match == wanted]
        if revoke:
            if not known:
                raise UsageError(f"{wanted}: it has no feed; `freshet feeds` lists those there are")
            await library.keep(SiteSetting(wanted, FEED, "", time.time()))
        elif not known:
            _check(wanted)
            secret = secrets.token_urlsafe(_OCTETS)
            known = [SiteSetting(wanted, FEED, secret, time.time())]
            await library.keep(known[0])
        return known
    finally:
        library.close()
        await parser.close()


def _check(wanted: str) -> None:
    """Raise UsageError where it is neither a rule nor a match of sites."""
    try:
        if not wanted.startswith(RULE):
            StoredSite.model_validate({"match": wanted, "never": True})
    except ValidationError as error:
        raise UsageError(f"{wanted}: {error.errors()[0]['msg']}") from error
