"""What sites state of the use of their pages, through a crawl, in what consumers get."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.frontier.clock import iso
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.storage.entries import RobotsRecord
from freshet.storage.tables.hosts import save_robots
from tests.console import freshet
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import SmallStore, rows

ROBOTS = """User-agent: *
Allow: /
Content-Signal: search=yes, ai-train=no
Content-Usage: /open/ train-ai=y

User-agent: other
Content-Usage: search=n
"""
WORDS = {
    "plain": "The river lies where two valleys meet, and millers tell of its floods in spring.",
    "used": "A mason set the arch without mortar, and the bridge has carried carts ever since.",
    "mined": "Larches climb the northern slope; below them goats have kept the meadows short.",
    "tagged": "Fishermen mend nets on the quay, and whoever buys early finds eels and perch.",
    "named": "Lamps of the miners hang in the chapel, one for each that did not come back.",
    "open/free": "Wind comes off the sea at noon, so the laundry dries before the bells ring.",
}
LINKS = "".join(f'<a href="/{name}">{name}</a> ' for name in WORDS)


def page(name: str, head: str = "", **headers: str) -> Page:
    body = f"<title>{name}</title>{head}<h1>{name}</h1><p>{WORDS[name]}</p>{LINKS}"
    return Page(body, headers={key.replace("_", "-"): value for key, value in headers.items()})


@dataclass
class Site:
    served: Scripted
    pages: dict[str, Page]
    folder: Path
    cursor: str = "0"
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def db(self) -> Path:
        return self.folder / "crawl.db"

    async def crawl(self) -> None:
        seeds = seeds_from_arguments([self.served.origin("a") + "/plain"]).seeds
        await crawl(
            quick(**self.settings), CrawlOrder(self.db, seeds, resume=False), watch=unwatched
        )

    async def crawl_later(self) -> None:
        """Crawl when robots.txt has to be read again."""
        SmallStore(self.db).execute("UPDATE robots SET fetched_at = 0.0")
        await self.crawl()

    async def typed(self, *words: object) -> str:
        """Invoke a command beside the server; it has an event loop of its own."""
        given = *words, "--db", self.db, "--config", self.folder / "freshet.toml"
        result = await asyncio.to_thread(freshet, *given)
        assert result.exit_code == 0, result.output
        return result.stdout

    async def told(self, *words: object, since: str | None = None) -> dict[str, dict[str, Any]]:
        """Entries by path, of all changes after the cursor."""
        text = await self.typed("changefeed", "--since", since or self.cursor, *words)
        *entries, last = map(json.loads, text.splitlines())
        self.cursor = last["last_seq"]
        origin = self.served.origin("a") + "/"
        return {each["id"].removeprefix(origin): each for each in entries}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    pages = {
        "/robots.txt": Page(ROBOTS, headers={"Content-Type": "text/plain"}),
        "/plain": page("plain"),
        "/used": page("used", Content_Usage="train-ai=y, search=n"),
        "/mined": page("mined", '<meta name="tdm-reservation" content="1">', tdm_reservation="0"),
        "/tagged": page("tagged", X_Robots_Tag="noai, max-snippet:50, other: noarchive"),
        "/named": page("named", "<meta name=robots content='noarchive, nosnippet'>"),
        "/open/free": page("open/free", Content_Usage="train-ai=y"),
    }
    (tmp_path / "freshet.toml").write_text("[network]\nallow_private_addresses = true\n")
    async with scripted({"a": pages}) as served:
        yield Site(served, pages, tmp_path)


def uses(entry: dict[str, Any]) -> dict[str, bool]:
    return {use: it["allowed"] for use, it in entry["preferences"].items()}


async def test_statements_of_all_places_are_told_with_pages(site: Site) -> None:
    await site.crawl()
    told = await site.told("--include-docs")
    signals = {"search": True, "ai-train": False}
    assert {name: uses(entry) for name, entry in told.items()} == {
        "plain": signals,
        # A statement that forbids counts before one that allows.
        "used": {"search": False, "ai-train": False},
        "mined": signals | {"tdm": False},
        "tagged": signals | {"ai-input": False, "snippet": True},
        "named": signals | {"snippet": False, "archive": False},
        "open/free": signals,
    }
    stated = told["used"]["preferences"]
    assert stated["search"]["statements"] == [
        "header: Content-Usage: train-ai=y, search=n",
        "robots.txt: Content-Signal: search=yes, ai-train=no",
    ]
    assert all(entry["doc"]["preferences"] == entry["preferences"] for entry in told.values())


async def test_a_changed_preference_is_an_entry_of_its_own(site: Site) -> None:
    await site.crawl()
    assert {entry["change"]["kind"] for entry in (await site.told()).values()} == {"new"}
    site.pages["/used"] = page("used")
    site.pages["/named"] = replace(site.pages["/named"], headers={"Content-Usage": "search=n"})
    await site.crawl()
    told = await site.told("--include-docs")
    assert sorted(told) == ["named", "used"]
    for entry in told.values():
        assert entry["change"]["kind"] == "refreshed"
        assert entry["change"]["kinds"] == ["preferences"]
    assert uses(told["used"]) == {"search": True, "ai-train": False}
    assert uses(told["named"])["search"] is False
    await site.crawl()
    assert await site.told() == {}
    sql = "SELECT count(*) FROM preference JOIN page ON page.id = page_id WHERE url LIKE '%/used'"
    assert rows(site.db, sql) == [(2,)]
    # Who reads all of it now is told of pages that are new, with what holds by now.
    assert {entry["change"]["kind"] for entry in (await site.told(since="0")).values()} == {"new"}


async def test_a_purpose_leaves_out_what_forbids_it(site: Site) -> None:
    await site.crawl()
    (site.folder / "freshet.toml").write_text('[crawl]\npurpose = ["tdm", "archive"]\n')
    told = await site.told("--include-docs")
    assert {name for name, entry in told.items() if entry.get("deleted")} == {"mined", "named"}
    assert all("doc" not in told[name] for name in ("mined", "named"))
    (site.folder / "freshet.toml").write_text('[crawl]\npurpose = ["ai-train"]\n')
    assert all(entry.get("deleted") for entry in (await site.told(since="0")).values())
    (site.folder / "freshet.toml").write_text("")
    assert not any(entry.get("deleted") for entry in (await site.told(since="0")).values())


async def test_check_and_explain_say_who_states_what(site: Site) -> None:
    await site.crawl()
    url = site.served.origin("a") + "/mined"
    words = "ai-train forbidden (robots.txt: Content-Signal: search=yes, ai-train=no; "
    for verb in ("check", "explain"):
        shown = " ".join((await site.typed(verb, url)).split())
        assert "meta tdm-reservation: 1" in shown
        assert words.partition(" (")[0] in shown
        stated = json.loads(await site.typed(verb, url, "--json"))
        known = stated["preferences"] if verb == "check" else stated["known"]["preferences"]
        assert {use: it["allowed"] for use, it in known.items()} == {
            "search": True, "ai-train": False, "tdm": False,
        }  # fmt: skip
    plain = await site.typed("text", url, "--format", "json")
    assert json.loads(plain)["preferences"]["tdm"]["statements"] == [
        "page: meta tdm-reservation: 1"
    ]


async def test_what_robots_txt_forbids_for_a_purpose_need_not_be_fetched(site: Site) -> None:
    site.pages["/robots.txt"] = replace(
        site.pages["/robots.txt"],
        body="User-agent: *\nContent-Signal: /open/ ai-train=no\nContent-Usage: search=n\n",
    )
    site.settings = {"crawl__purpose": ["ai-train", "tdm"], "crawl__skip_forbidden": True}
    await site.crawl()
    assert "/open/free" not in site.served.asked("a")
    assert set(site.served.asked("a")) >= {f"/{name}" for name in WORDS if name != "open/free"}
    url = site.served.origin("a") + "/open/free"
    told = json.loads(await site.typed("history", url, "--json"))
    assert "Content-Signal: /open/ ai-train=no" in json.dumps(told)


async def test_a_site_is_asked_once_whether_it_reserves_mining_where_that_matters(
    site: Site,
) -> None:
    file = "/.well-known/tdmrep.json"
    site.pages[file] = Page('[{"location": "/plain", "tdm-reservation": 1}]')
    await site.crawl()
    assert file not in site.served.asked("a")
    site.settings = {"crawl__purpose": ["tdm"]}
    await site.crawl_later()
    assert site.served.asked("a").count(file) == 1
    told = site.served.asked("a")
    assert told.index(file) < len(told) - 1 - told[::-1].index("/plain")
    stated = (await site.told(since="0"))["plain"]["preferences"]
    assert stated["tdm"] == {
        "allowed": False, "statements": ["tdmrep.json: tdm-reservation 1 for /plain"],
    }  # fmt: skip
    # Where it cannot be read, what it said before stays; where it is gone it does not.
    site.pages[file] = Page("", 500)
    await site.crawl_later()
    assert "tdm" in (await site.told(since="0"))["plain"]["preferences"]
    del site.pages[file]
    await site.crawl_later()
    assert "tdm" not in (await site.told(since="0"))["plain"]["preferences"]


async def test_it_is_known_since_when_robots_txt_forbids_a_page(site: Site) -> None:
    async def explained(name: str) -> dict[str, Any]:
        url = f"{site.served.origin('a')}/{name}"
        found: dict[str, Any] = json.loads(await site.typed("explain", url, "--json"))["robots"]
        return found

    async def reads(body: str) -> str:
        """Let the site have that robots.txt, and return when it was read."""
        site.pages["/robots.txt"] = Page(body, headers={"Content-Type": "text/plain"})
        await site.crawl_later()
        return iso(rows(site.db, "SELECT max(fetched_at) FROM robots")[0][0])

    await site.crawl()
    first = await reads("User-agent: *\nDisallow: /none\n")
    await reads("User-agent: *\nDisallow: /none\n")
    second = await reads("User-agent: *\nDisallow: /named\n")
    await reads("User-agent: *\nDisallow: /named\nDisallow: /used\n")
    await reads("User-agent: *\nDisallow: /named # again\n")
    assert rows(site.db, "SELECT count(*) FROM past_robots") == [(5,)]
    forbidden, allowed = await explained("named"), await explained("plain")
    assert (forbidden["verdict"]["allowed"], forbidden["since"]) == (False, second)
    assert allowed["verdict"]["allowed"]
    assert allowed["since"] < first
    shown = await site.typed("explain", f"{site.served.origin('a')}/named")
    assert "since" in shown
    # The newest twenty are kept.
    with closing(sqlite3.connect(site.db)) as db, db:
        for number in range(30):
            save_robots(db, 1, RobotsRecord("parsed", 4e9 + number, b"%d" % number))
        save_robots(db, 1, RobotsRecord("unreachable", 5e9, b""))
        save_robots(db, 1, RobotsRecord("parsed", 5e9, b"", None, 5e9))
    found = rows(site.db, "SELECT count(*), min(at), max(at) FROM past_robots")
    assert found == [(20, 4e9 + 10, 4e9 + 29)]
