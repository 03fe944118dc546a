"""New sites: a look at them before anything is kept, then their settings and first visit."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from freshet.config.settings import Settings, SiteSettings
from freshet.config.sites import Sites
from freshet.crawler.admission.site_lists import read_sites
from freshet.crawler.cli.check import Check, looking, parsed_page, visited
from freshet.crawler.compare.not_content.check import waits_for_scripts
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.extensions.dashboard.daemon_child import DaemonChild
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.extensions.dashboard.settings_file import checked
from freshet.crawler.fetch.client import Request
from freshet.crawler.read.library import asking, noting
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.sitemaps import looks_like, parse_sitemap
from freshet.crawler.run.network import public_host
from freshet.crawler.run.terminal import counted
from freshet.crawler.urls import origin
from freshet.storage.database import write_beside
from freshet.storage.queries import sites
from freshet.storage.records import FetchResult, StoredSeed
from freshet.storage.stores import is_folder
from freshet.storage.tables import runs

#: Stored looks, most pages of a list that are fetched for a look, and the time for all of them.
_KEPT, _LOOKED_AT, _LOOK_S = 20, 5, 90.0
_HOPS, _DAY_S = 5, 86_400
_ROBOTS: Final = "robots.txt"
#: What of a site is visited: by the scope, in words.
SCOPES: Final[Mapping[str, str]] = {
    "host": "the whole host", "domain": "its domain, with all hosts below",
    "prefix": "all below this address", "list": "this page alone",
}  # fmt: skip


@dataclass(slots=True)
class FoundPage:
    """The things found at an address: a line for each of robots.txt, page, scripts, feeds, sitemap.

    ``trouble`` is the reason why the page could not be read, or "".
    """

    url: str
    title: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)
    trouble: str = ""


@dataclass(slots=True)
class SiteLook:
    """A look at new sites; ``found`` grows until it is ``done``."""

    number: int
    seeds: tuple[StoredSeed, ...]
    settings: Settings
    contact: str
    found: list[FoundPage] = field(default_factory=list)
    done: bool = False
    added: bool = False


class Adding:
    """The page on which sites are added."""

    def __init__(self, child: DaemonChild) -> None:
        """Let ``child`` make the first visits where no daemon runs."""
        self._child, self._numbers = child, count(1)
        self._looks = deque[SiteLook](maxlen=_KEPT)
        self._tasks = set[asyncio.Task[None]]()

    async def shown(self, asked: DashboardRequest) -> Mapping[str, object]:
        """Return the form, the findings of a look, or the first visits."""
        wanted = asked.query.get("look", "")
        look = next((it for it in self._looks if str(it.number) == wanted), None)
        return {
            "look": look, "scopes": SCOPES, "chosen": asked.settings.crawl.scope,
            "budget": asked.settings.daemon.budget, "daemon": self._child.state(),
            "needs_contact": not asked.settings.crawl.contact,
            "visits": [] if look is None or not look.added else await _visits(asked, look),
        }  # fmt: skip

    async def change(self, asked: DashboardRequest, form: Mapping[str, str]) -> str:
        """Look at new sites, or add the sites of a look; return the URL of the result.

        Raises:
            UsageError: the input is wrong; it was not stored.
        """
        if "look" not in form:
            return f"/add?look={self._begin(asked, form).number}"
        look = next((it for it in self._looks if str(it.number) == form["look"]), None)
        if look is None:
            raise UsageError("this look was forgotten; begin again")
        await _add(asked, look, form)
        look.added = True
        if self._child.state().can == "start":
            await self._child.start()
        return f"/add?look={look.number}"

    def _begin(self, asked: DashboardRequest, form: Mapping[str, str]) -> SiteLook:
        """Begin a look at the typed URLs."""
        typed = form.get("urls", "").strip()
        listed = read_sites(typed.encode(), "")
        for problem in listed.problems:
            raise UsageError(f"line {problem.line}: {problem.text}: {problem.message}")
        if not listed.seeds:
            raise UsageError("type a URL, such as https://example.org/, or several, one a line")
        contact, settings = form.get("contact", "").strip(), asked.settings
        if contact:
            crawl = {**settings.crawl.model_dump(), "contact": contact}
            try:
                named = type(settings.crawl).model_validate(crawl)
            except ValidationError as error:
                raise UsageError(f"contact: {error.errors()[0]['msg']}") from error
            settings = settings.model_copy(update={"crawl": named})
        public = public_host([it.url for it in listed.seeds], settings.network.resolve)
        if not settings.crawl.contact and public is not None:
            raise UsageError(
                f"{public} is a public host, and a crawler must say who runs it: type a contact"
            )
        look = SiteLook(next(self._numbers), listed.seeds, settings, contact)
        self._looks.append(look)
        task = asyncio.create_task(_look(look))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return look


# -- looking -----------------------------------------------------------------


async def _look(look: SiteLook) -> None:
    """Look at the first addresses, one after the other."""
    try:
        async with asyncio.timeout(_LOOK_S), AsyncExitStack() as stack:
            parser, _, fetcher = looking(look.settings, stack)
            for seed in look.seeds[:_LOOKED_AT]:
                look.found.append(found := FoundPage(seed.url))
                try:
                    await _look_at(found, look.settings, seed, parser, fetcher)
                except CrawlError as error:
                    found.trouble = str(error)
    except TimeoutError:
        look.found[-1].trouble = "it takes too long; the crawl will find out"
    except CrawlError as error:
        look.found.append(FoundPage(look.seeds[0].url, trouble=str(error)))
    finally:
        look.done = True


async def _look_at(
    found: FoundPage, settings: Settings, seed: StoredSeed, parser: Any, fetcher: Any
) -> None:
    """Fetch a page with its robots.txt, and a sitemap, and record the findings."""
    told, result = Check(seed.url), None
    for url in filter(None, (seed.url, seed.fallback_url)):
        told = Check(url)
        result = await _followed(fetcher, settings, told)
        if result is not None and result.outcome == "fetched":
            break
    found.url = told.url
    found.lines += [(it.name, f"{it.answer}: {it.why}") for it in told.steps if it.name == _ROBOTS]
    if result is None or result.outcome != "fetched":
        found.trouble = _why(result, told)
        return
    page = await parsed_page(parser, result)
    if isinstance(page, ParsedPage):
        found.title = page.title or ""
        found.lines += _of_page(page, found.url)
    if await waits_for_scripts(parser, result):
        found.lines.append(("JavaScript", "the page says nothing until its scripts have run"))
    await asyncio.sleep(settings.politeness.delay_s)
    found.lines.append(("sitemap", await _sitemap(fetcher, f"{origin(found.url)}/sitemap.xml")))


async def _sitemap(fetcher: Any, url: str) -> str:
    """Describe the contents of a sitemap."""
    answer = await fetcher.fetch(Request(url, "sitemap"))
    if answer.outcome != "fetched" or looks_like(answer.body[:4_096]) != "sitemap":
        return "none at /sitemap.xml; one that robots.txt names is read"
    return f"{url} names {counted(len(parse_sitemap(answer.body, url=url).entries), 'URL')}"


async def _followed(fetcher: Any, settings: Settings, told: Check) -> FetchResult | None:
    """Return the answer of a page, after its redirects."""
    result = None
    for _ in range(_HOPS):
        result = await visited(fetcher, settings, told)
        if result is None or result.outcome != "redirected" or result.location is None:
            break
        told.url = result.location
    return result


def _of_page(page: ParsedPage, url: str) -> Iterator[tuple[str, str]]:
    """Yield the facts about a page and its links."""
    here = str(origin(url))
    inside = sum(str(origin(each)) == here for each in page.links.urls)
    yield "page", f"{counted(len(page.blocks), 'block')} of main text"
    yield "links", f"{counted(inside, 'link')} to pages of this host"
    if page.feeds:
        yield "feeds", ", ".join(page.feeds[:3])


def _why(result: FetchResult | None, told: Check) -> str:
    """Return in a line why a page was not read."""
    if result is None:
        last = told.steps[-1]
        words = f"robots.txt {last.answer}: {last.why}"
    else:
        words = ", ".join(filter(None, (result.reason, result.detail))) or str(result.outcome)
    # No option starts this server again.
    return words.replace("--allow-private-addresses", "network.allow_private_addresses")


# -- adding ------------------------------------------------------------------


async def _add(asked: DashboardRequest, look: SiteLook, form: Mapping[str, str]) -> None:
    """Write the settings of the sites of a look, and keep the sites in the store."""
    path = asked.library.path
    if is_folder(path):
        raise UsageError("a folder of shards takes new sites on the command line: --sites FILE")
    said = {name: form.get(name, "").strip() for name in ("scope", "every", "importance", "budget")}
    if said["scope"] not in SCOPES:
        raise UsageError(f"scope: accepted are {', '.join(SCOPES)}")
    keys = {match: table for seed in look.seeds for match, table in _tables(asked, seed.url, said)}
    values: dict[str, object] = {"crawl.contact": look.contact} if look.contact else {}
    if said["budget"]:
        values["daemon.budget"] = checked("daemon.budget", said["budget"])
    if values or keys:
        await asked.file.write(values, keys={"sites": keys}, tells=False)
    await asked.library.one(0, noting(_keep, seeds=look.seeds, now=asked.now))
    asked.file.tell_daemon()


def _tables(
    asked: DashboardRequest, url: str, said: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the table of a site, if it differs from the settings there."""
    match = url.split("/")[2]
    if said["scope"] in ("list", "prefix"):
        match = url if said["scope"] == "list" else f"{url}*"
    table: dict[str, object] = {"every": said["every"]} if said["every"] else {}
    if said["importance"]:
        table["importance"] = said["importance"]
    if (Sites(asked.settings.sites).at(url).scope or asked.settings.crawl.scope) != said["scope"]:
        table["scope"] = said["scope"]
    try:
        whole = SiteSettings.model_validate({"match": match, **table})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{first['loc'][-1]}: {first['msg']}") from error
    if table:
        yield match, {name: getattr(whole, name) for name in table}


async def _keep(path: Path, seeds: tuple[StoredSeed, ...], now: float) -> None:
    await asyncio.to_thread(write_beside, path, lambda db: runs.add(db, seeds, now))


async def _visits(asked: DashboardRequest, look: SiteLook) -> list[tuple[str, Any]]:
    """Return today's results of visits to the new sites, None before the first request."""
    found = []
    for place in dict.fromkeys(str(origin(it.url)) for it in look.seeds[:_LOOKED_AT]):
        read = asking(sites.sites, since_day=int(asked.now // _DAY_S), order="origin", only=place)
        told = await asked.library.one(0, read)
        found.append((place, told[0].visits if told else None))
    return found
