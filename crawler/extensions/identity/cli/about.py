"""``freshet about``: a page for webmasters about the crawler."""

import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import jinja2
import typer

from freshet.config.settings import Settings
from freshet.crawler.cli.options import ConfigFile, read_settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.identity.agent import IdentitySettings
from freshet.crawler.run.network import user_agent
from freshet.crawler.run.terminal import fail, say
from freshet.storage.errors import trouble


def about_command(
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page there; else it is printed.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Write a page about your crawler for webmasters.

    It says who crawls, why, and how to refuse, in one HTML file. Publish it, and let crawl.contact
    be its URL.
    """
    settings, _ = read_settings(config, {})
    if not settings.crawl.contact:
        fail("crawl.contact: the page has to say whom to write to; set it in freshet.toml", 2)
    page = page_about(settings, time.time())
    if output is None:
        sys.stdout.write(page)
        return
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CrawlError(trouble(output, error)) from error
    say("page:", "green", f"{output}; publish it, and let crawl.contact be its URL")


def page_about(settings: Settings, now: float) -> str:
    """Return the page, in HTML."""
    said, crawl = settings.group(IdentitySettings), settings.crawl
    is_signed = said.sign or any(each.sign for each in settings.sites)
    text = files("freshet.crawler.extensions.identity").joinpath("about.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True)
    return environment.from_string(text).render(
        product=crawl.product,
        user_agent=user_agent(crawl.product, crawl.contact),
        operator=said.operator,
        reason=said.reason,
        delay=f"{settings.politeness.delay_s:g} s",
        follow_nofollow=crawl.follow_nofollow,
        addresses=[str(each) for each in said.addresses],
        directory=said.directory if is_signed else "",
        keys=_thumbprints(said, now) if is_signed else [],
        contact=crawl.contact,
        contact_shown=crawl.contact.removeprefix("mailto:"),
    )


def _thumbprints(said: IdentitySettings, now: float) -> list[str]:
    from freshet.crawler.extensions.identity.keys import key_file, published, read_keys  # noqa: PLC0415 - an extra

    return [each.thumbprint for each in published(read_keys(key_file(said.key)), now)]
