"""``freshet text URL``: the main content of a page, as Markdown, text, HTML or JSON."""

import re
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from freshet.config.settings import Settings
from freshet.crawler import terminal
from freshet.crawler.cli import options
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Page, read_settings
from freshet.crawler.documents import Documents, NoText, StoredDocument, document_version
from freshet.crawler.network import parser_of
from freshet.crawler.reduce.parser_process import ParserLost
from freshet.crawler.tally import CrawlError
from freshet.crawler.terminal import fail, print_json
from freshet.storage.queries import page as page_queries

#: Characters that would command a terminal.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def text_command(
    url: Page,
    form: Annotated[
        Literal["markdown", "text", "html", "json"],
        typer.Option(
            "--format", metavar="FORM", help="markdown, text, html, or json with the metadata."
        ),
    ] = "markdown",
    version: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="A version by its number in `freshet history`; -1 is the last."
        ),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="The version of then: 2026-03-31T12:00.")
    ] = None,
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
) -> None:
    """Print the main content of a page: the last significant version, or the one asked for.

    Menus, adverts and other frames are left out; links are absolute. It is made from the kept
    bytes when it is read. JSON also has what the page says of itself: title, author, dates ….
    """
    if version is not None and as_of is not None:
        fail("--version and --as-of exclude each other", 2)
    if version is not None and not version.removeprefix("-").isdecimal():
        fail(f"--version {version}: not a number as in `freshet history`; -1 is the last", 2)
    settings, _ = read_settings(config, {})
    found = terminal.run(_read(db, url, version or as_of, settings))
    if form == "json":
        print_json(found.as_json())
        return
    if found.missing is not None:
        fail(f"{found.source.url}: {found.missing}")
    content = {
        "markdown": found.document.markdown,
        "text": found.document.text,
        "html": found.document.html,
    }[form]
    sys.stdout.write(_CONTROLS.sub("", content) + "\n")


async def _read(db: Path, typed: str, wanted: str | None, settings: Settings) -> StoredDocument:
    urls = terminal.spellings(typed)
    parser = parser_of(settings)
    documents = Documents(db, parser)
    try:
        async with page_queries.snapshot(db) as connection:
            known = await page_queries.find(connection, urls)
            if known is None:
                fail(options.unknown(typed, await options.nearest(connection, urls[0])))
            final = known if known.alias is None else known.alias
            version = await document_version(connection, final.page_id, wanted)
            (found,) = (await documents.read(connection, [version.version_id])).values()
            return found
    except NoText as error:
        fail(f"{typed}: {error}")
    except ValueError as error:
        fail(str(error), 2)
    except ParserLost as error:
        raise CrawlError(f"{typed}: its text was not made ({error}); try again") from error
    finally:
        documents.close()
        await parser.close()
