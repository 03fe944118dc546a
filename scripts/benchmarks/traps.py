"""Pages fetched for each document of real manuals, on sites that give a page many URLs.

``--manuals``: a folder with HTML manuals, such as /usr/share/doc, or Debian's documentation
packages unpacked, each in a folder of its own. Folders that differ in their last part by a language
(``-de``) are translations, and by what follows ``_`` versions of one manual. Without HTML there
nothing is measured. Each kind of site (sessions, words to highlight, views for printers,
translations, versions, a calendar with the dates of Debian's changelogs, a list whose posts move)
is made of the manuals and crawled with default settings, on a clock of its own and without a
network.

Prints for each kind: ``documents``, ``requests``, their ratio ``fetched``, ``lost`` documents of
which no URL was read, ``in_vain`` requests for what was known or is not there, and ``untold``
linked URLs that were neither requested nor have a line in the summary with the setting that
changes it.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import CrawlReport, DaemonOrder
from freshet.crawler.run.terminal import setting_of
from freshet.crawler.run.wiring import Observer
from freshet.crawler.urls import canonical
from scripts.benchmarks.command import arguments, finish, say, workspace
from scripts.benchmarks.manual_sites import (
    BEGIN,
    ORIGIN,
    Manual,
    ManualSite,
    Served,
    Site,
    Spelling,
    frequent_words,
    highlighted,
    key_of,
    manuals,
    of_several,
    path_of,
    printed,
)

#: By kind, the goals of the ratio of requests to documents.
_GOALS: Final = {"session": 1.3, "highlight": 1.5, "print": 1.2}
#: Pages from which on a manual has a site.
_LEAST: Final = 10


# -- spellings ---------------------------------------------------------------


def _behind(head: str) -> Callable[[str], str]:
    """Read the page of a path with a part before it."""
    return lambda target: key_of(re.sub(head, "/", target, count=1))


def _index(key: str, served: Served) -> str:
    is_index = not key or key.rpartition("/")[2] == "index"
    if not is_index:
        return f"{path_of(key)}.html"
    folder = path_of(key.removesuffix("index"))
    return folder + served.chance.choice(["", "index.html"])


def _indexed(target: str) -> str:
    path = unquote(urlsplit(target).path)[1:]
    if path in {"", "index.html"}:
        return ""
    return f"{path}index" if path.endswith("/") else path.removesuffix(".html")


def _own(spelled: Callable[[str], str]) -> Callable[[Served], list[str]]:
    """One more link of each page, to itself."""
    return lambda served: [spelled(key_of(served.target.removeprefix("/print")))]


def _print(words: str = "") -> Callable[[str, Served], str]:
    def show(html: str, served: Served) -> str:
        if "print" not in served.query and not served.target.startswith("/print/"):
            return html
        line = f"<p>{words.format(ORIGIN + served.target)}</p>" if words else ""
        return printed(html).replace("</body>", f"{line}</body>")

    return show


def spellings(manual: Manual) -> dict[str, Spelling]:
    """The ways in which a site gives the pages of a manual more than one URL."""
    words = frequent_words(manual, 40)
    by_query = _own(lambda key: f"{path_of(key)}?print=1")
    return {
        "one URL for each page": Spelling(),
        "index: / and index.html": Spelling(link=_index, find=_indexed),
        "reference: ?ref= of four": Spelling(
            link=lambda key, it: f"{path_of(key)}?ref={it.chance.choice('abcd')}"
        ),
        "reference: ?from= the page": Spelling(
            link=lambda key, it: f"{path_of(key)}?from={quote(it.key, '')}"
        ),
        "session: in the query": Spelling(
            link=lambda key, it: f"{path_of(key)}?PHPSESSID={it.token}"
        ),
        "session: of a common name": Spelling(link=lambda key, it: f"{path_of(key)}?s={it.token}"),
        "session: a segment": Spelling(
            link=lambda key, it: f"/{it.token}{path_of(key)}", find=_behind(r"^/[0-9a-f]{32}/")
        ),
        "session: ;jsessionid": Spelling(
            link=lambda key, it: f"{path_of(key)};jsessionid={it.token}",
            find=lambda target: key_of(target.partition(";")[0]),
        ),
        "session: of the program's own": Spelling(
            link=lambda key, it: f"{path_of(key)};visit={it.token}",
            find=lambda target: key_of(target.partition(";")[0]),
        ),
        "highlight: one link in four": Spelling(
            link=lambda key, it: path_of(key) + it.chance.choice(
                ["", "", "", f"?highlight={it.chance.choice(words)}"]
            ),
            show=lambda html, it: highlighted(html, it.query.get("highlight", "")),
        ),
        "print: ?print=1": Spelling(more=by_query, show=_print()),
        "print: ?print=1 with its URL": Spelling(more=by_query, show=_print("Printed from {}")),
        "print: /print/": Spelling(
            more=_own(lambda key: f"/print{path_of(key)}"), find=_behind("^/print/"), show=_print()
        ),
    }  # fmt: skip


def left_out(manual: Manual) -> dict[str, tuple[Spelling, dict[str, object]]]:
    """The ways in which linked pages are left out, each with its settings; and all at once."""
    marked = set(list(manual.pages)[3::5])
    robots = "User-agent: *\n" + "".join(f"Disallow: {path_of(each)}$\n" for each in marked)

    def files(served: Served) -> list[str]:
        path = path_of(served.key or "first")
        return [f"{path}{end}" for end in (".zip", ".dat", "/a/a/a/a", "?y=2030-01-01")]

    def find(target: str) -> str:
        return key_of(target).removesuffix(".dat")

    table = {"match": urlsplit(ORIGIN).netloc}
    few: dict[str, object] = {"sites": [table | {"max_pages": 20}]}
    never: dict[str, object] = {
        "sites": [{"match": f"{table['match']}/{max(marked)}", "never": True}]
    }
    every = Spelling(
        rel=lambda key: "nofollow" if key in marked else "", more=files, find=find, robots=robots
    )
    return {
        "nofollow": (Spelling(rel=every.rel), {}),
        "robots.txt": (Spelling(robots=robots), {}),
        "depth": (Spelling(), {"crawl.max_depth": 1}),
        "pages of a site": (Spelling(), few),
        "pages of a run": (Spelling(), {"crawl.max_pages": 20}),
        "never": (Spelling(), never),
        "other types, endings and traps": (Spelling(more=files, find=find), {}),
        "all of these": (every, few | {"crawl.max_depth": 2}),
    }


def editions(manual: Manual) -> dict[str, Spelling]:
    """The ways in which a site gives translations or versions their URLs."""

    def by_query(name: str) -> Spelling:
        def link(key: str, _served: Served) -> str:
            edition, _, rest = key.partition("/")
            return f"{path_of(rest)}?{name}={quote(edition)}"

        def find(target: str) -> str:
            query = parse_qs(urlsplit(target).query)
            return f"{query.get(name, manual.editions[:1])[0]}/{key_of(target)}"

        return Spelling(link=link, find=find)

    return {
        "a folder for each": Spelling(),
        "?lang= for each": by_query("lang"),
        "a folder for each, and ?print=1": Spelling(
            more=lambda it: [f"{it.target.partition('?')[0]}?print=1"], show=_print()
        ),
        "?lang= for each, and &print=1": _with_print(by_query("lang")),
    }


def _with_print(plain: Spelling) -> Spelling:
    def more(served: Served) -> list[str]:
        target = served.target.replace("&print=1", "")
        return [f"{target}&print=1"] if "?" in target else []

    return Spelling(link=plain.link, find=plain.find, more=more, show=_print())


# -- calendars ---------------------------------------------------------------

_SIGNED: Final = re.compile(r"^ -- [^<]+<[^>]*>  (.+)$", re.MULTILINE)


def events(folder: Path, most: int = 120) -> dict[date, str]:
    """What Debian's changelogs say of a day, for the 400 days of which they say most."""
    found: dict[date, str] = {}
    packages = (each.rglob("changelog.Debian.gz") for each in sorted(folder.iterdir()))
    for path in chain.from_iterable(packages):
        entries = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        begin = 0
        for signed in _SIGNED.finditer(entries):
            said, begin = entries[begin : signed.start()], signed.end()
            try:
                day = parsedate_to_datetime(signed[1]).date()
            except ValueError:
                continue
            found.setdefault(day, " ".join(said.split())[:1_500])
    days = sorted(found)
    spans = [[day for day in days if first <= day < first + timedelta(400)] for first in days]
    return {day: found[day] for day in max(spans, key=len, default=[])[:most]}


class CalendarSite(Site):
    """A calendar without end, in which some days have an event; today is a third of them past."""

    def __init__(self, of_days: dict[date, str], view: str) -> None:
        super().__init__()
        self.events, self.view = of_days, view
        days = sorted(of_days)
        self.today = days[len(days) // 3]
        noon = datetime(self.today.year, self.today.month, self.today.day, 12, tzinfo=UTC)
        self.clock.go_on_from(noon.timestamp()) if noon.timestamp() > BEGIN else None
        # Days are told from the crawl's own today.
        self.shift = datetime.fromtimestamp(self.clock.now(), UTC).date() - self.today

    @property
    def wanted(self) -> set[str]:
        """The days with an event."""
        return {f"{day + self.shift}" for day in self.events}

    def _day(self, target: str) -> date | None:
        parts = urlsplit(target)
        text = parse_qs(parts.query).get("date", [""])[0] or parts.path.removeprefix("/calendar/")
        if parts.path == "/":
            return self.today + self.shift
        try:
            return date.fromisoformat(text.strip("/").replace("/", "-"))
        except ValueError:
            return None

    def _target(self, day: date) -> str:
        return f"/calendar/{day:%Y/%m/%d}/" if self.view == "path" else f"/calendar?date={day}"

    def document(self, target: str) -> str | None:
        """The day of a page, if something is told of it."""
        day = self._day(target)
        return f"{day}" if day is not None and day - self.shift in self.events else None

    def answer(self, target: str) -> str | None:
        """The page of a day, with links to those around it."""
        day = self._day(target)
        if day is None:
            return None
        around = [day + timedelta(n) for n in (-1, 1, -7, 7, -30, 30)]
        menu = "".join(self.link(self._target(each), f"{each:%d %B %Y}") for each in around)
        said = self.events.get(day - self.shift, "There are no events on this day.")
        return (
            f"<title>Calendar</title><nav>{menu}</nav><main><h1>{day:%A, %d %B %Y}</h1>"
            f"<p>{said}</p></main>"
        )


# -- lists -------------------------------------------------------------------

_EACH: Final = 10
#: Posts at the beginning, hours between two new ones, days of a daemon, and its requests a day.
_POSTS: Final = 60
_HOURS: Final = 12.0
_DAYS: Final = 20
_BUDGET: Final = 30.0
_PARAGRAPH: Final = re.compile(r"<p>(.{200,600}?)</p>", re.DOTALL)


class ListSite(Site):
    """A list of posts, the newest on top of its first page, ten on each."""

    most_requests = 100_000

    def __init__(self, manual: Manual, view: str) -> None:
        super().__init__()
        self.view = view
        self.posts = self._posts(manual)

    @staticmethod
    def _posts(manual: Manual) -> list[str]:
        found = (each for html in manual.pages.values() for each in _PARAGRAPH.findall(html))
        return [re.sub("<[^>]*>", "", each) for each in dict.fromkeys(found)]

    @classmethod
    def has_enough(cls, manual: Manual) -> bool:
        """Whether a manual has a paragraph for each post."""
        return len(cls._posts(manual)) > _POSTS + _DAYS * 24 / _HOURS

    def known(self) -> int:
        """The number of posts by now."""
        passed = (self.clock.now() - BEGIN) / 3_600
        return min(len(self.posts), _POSTS + int(passed / _HOURS))

    @property
    def wanted(self) -> set[str]:
        """The posts that there are."""
        return {f"/post/{n}" for n in range(self.known())}

    def document(self, target: str) -> str | None:
        """The post at a target."""
        return target if target in self.wanted else None

    def page_number(self, target: str) -> int:
        """The number of a page of the list, 0 for others."""
        number = re.fullmatch(r"/(?:\?page=|page/)?(\d*)/?", target)
        return int(number[1] or 1) if number else 0

    def answer(self, target: str) -> str | None:
        """A post, or a page of the list."""
        number, known = self.page_number(target), self.known()
        if not number:
            post = int(target.removeprefix("/post/")) if target in self.wanted else -1
            said = f"<h1>Post {post}</h1><p>{self.posts[post]}</p>"
            return None if post < 0 else f"<title>{post}</title><main>{said}</main>"
        shown = range(known - 1, -1, -1)[(number - 1) * _EACH : number * _EACH]
        if not shown:
            return None
        entries = "".join(
            f"<li><h2>{self.link(f'/post/{n}', f'Post {n}')}</h2><p>{self.posts[n][:300]}</p></li>"
            for n in shown
        )
        last = -(-known // _EACH)
        pages = ((number - 1, "prev"), (number + 1, "next"))
        menu = "".join(
            self.link(self._page(n), f"{rel} page", f'rel="{rel}"')
            for n, rel in pages
            if 1 <= n <= last
        )
        return f"<title>Posts</title><main><ul>{entries}</ul></main><nav>{menu}</nav>"

    def _page(self, number: int) -> str:
        if number == 1:
            return "/"
        return f"/page/{number}/" if self.view == "path" else f"/?page={number}"


def kept(site: ListSite, db: Path) -> dict[str, object]:
    """Let a daemon keep a list for some days; figures of its pages behind the first one."""
    order = DaemonOrder(
        db, seeds_from_arguments([f"{ORIGIN}/"]).seeds, _BUDGET, time_limit_s=_DAYS * 86_400.0
    )
    settings = load(None, _settings())[0]
    asyncio.run(
        keep(
            settings, order, watch=_unwatched, fetcher=site, clock=site.clock, rng=Random(58)
        )
    )  # fmt: skip
    with closing(sqlite3.connect(db)) as store:
        rows = store.execute(
            "SELECT p.url, o.kind FROM observation AS o JOIN page AS p ON p.id = o.page_id "
            "WHERE o.kind IN ('changed', 'unchanged', 'new') ORDER BY o.at"
        ).fetchall()
    numbers = [(site.page_number(url.removeprefix(ORIGIN)), kind) for url, kind in rows]
    read = {url.removeprefix(ORIGIN) for url, _ in rows}
    later = [kind for number, kind in numbers if number > 1]
    return {
        "documents": len(site.wanted),
        "requests": len(site.asked),
        # One that came in the last hours is not late.
        "lost": len(site.wanted - read - {f"/post/{site.known() - 1}"}),
        "visits_of_later_pages": len(later),
        "changed_later_pages": later.count("changed"),
        "visits_of_the_first_page": sum(number == 1 for number, _ in numbers),
    }


# -- crawls ------------------------------------------------------------------


@dataclass(frozen=True)
class Crawled:
    """A site after its crawl: what the store has of its URLs, and the report."""

    site: Site
    report: CrawlReport
    #: By URL: the kind of the last visit, and why it is held back.
    pages: dict[str, tuple[str | None, str | None]]

    @property
    def read(self) -> list[str | None]:
        """The documents of the pages that were read."""
        content = {"new", "changed", "unchanged"}
        read = (url for url, (kind, _) in self.pages.items() if kind in content)
        return [self.site.document(url.removeprefix(ORIGIN)) for url in read]

    def untold(self) -> list[str]:
        """Linked URLs that were not requested, and that no line of the summary counts."""
        asked = {canonical(ORIGIN + each) for each in self.site.asked}
        return sorted(u for u in self.site.linked_urls - asked if not self._is_told(u))

    def _is_told(self, url: str) -> bool:
        kind, held_back = self.pages.get(url, (None, None))
        if held_back is not None:
            return held_back in self.report.held_back and setting_of(held_back) is not None
        if kind is None:
            return self.report.ending in {"limit", "requests"}
        return kind == "refused" and self.report.refused_by_robots > 0

    def figures(self) -> dict[str, object]:
        """The figures of one site."""
        documents, read = len(self.site.wanted), self.read
        requests = len(self.site.asked)
        return {
            "documents": documents,
            "requests": requests,
            "fetched": round(requests / documents, 3),
            "lost": len(self.site.wanted.difference(read)),
            "in_vain": requests - len(set(read) - {None}),
            "untold": len(self.untold()),
        }


def crawled(site: Site, db: Path) -> Crawled:
    """Crawl a site with default settings, but for its own."""
    settings = load(None, _settings() | site.settings)[0]
    order = CrawlOrder(db, seeds_from_arguments([f"{ORIGIN}/"]).seeds)
    report = asyncio.run(crawl(settings, order, watch=_unwatched, fetcher=site, clock=site.clock))
    with closing(sqlite3.connect(db)) as store:
        rows = store.execute("SELECT url, last_kind, held_back FROM page WHERE role = 'page'")
        pages = {url: (kind, held_back) for url, kind, held_back in rows}
    return Crawled(site, report, pages)


def _settings() -> dict[str, object]:
    return {
        "crawl.contact": "https://crawler.example/about",
        "crawl.attempts": 1,
        "politeness.delay_s": 1.0,
        "politeness.slow_factor": 0,
        # Visits of virtual time are faster than what is committed every so often.
        "store.batch": 4,
    }


def _unwatched(_live: Live) -> Observer:
    return lambda _batch: None


def sites(found: Sequence[Manual], folder: Path) -> Iterator[tuple[str, str, Site]]:
    """Yield the sites with their kinds and the names of their manuals."""
    for manual in found:
        for kind, (spelling, settings) in left_out(manual).items():
            yield f"left out: {kind}", manual.name, ManualSite(manual, spelling, settings)
        for kind, spelling in spellings(manual).items():
            yield kind, manual.name, ManualSite(manual, spelling)
        for view in ("path", "query"):
            if ListSite.has_enough(manual):
                yield f"list: pages in the {view}", manual.name, ListSite(manual, view)
    yield from _sites_of_editions(found)
    if days := events(folder):
        for view in ("path", "query"):
            yield f"calendar: days in the {view}", "changelogs", CalendarSite(days, view)


def _sites_of_editions(found: Sequence[Manual]) -> Iterator[tuple[str, str, Site]]:
    for what, part in (("translations", "language"), ("versions", "version")):
        for manual in of_several(list(found), part):
            for kind, spelling in editions(manual).items():
                if part == "language" or "?lang" not in kind:
                    yield f"{what}: {kind}", manual.name, ManualSite(manual, spelling)


def main() -> None:
    """Crawl the sites and print their figures."""
    parser = arguments(__doc__)
    parser.add_argument("--manuals", type=Path, default=Path("/usr/share/doc"), metavar="FOLDER")
    parser.add_argument("--pages", type=int, default=100, help="pages of a manual at most")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=N",
        help="a setting of all crawls, such as traps.min_copy_pairs=0 to see what a rule is worth",
    )  # fmt: skip
    parser.add_argument("--only", default="", metavar="TEXT", help="kinds that begin so")
    options = parser.parse_args()
    found = list(manuals(options.manuals, _LEAST, options.pages))
    if not found:
        say(f"no HTML manual of {_LEAST} pages in {options.manuals}: nothing is measured")
        finish({"measured": False}, options.output)
        return
    own = {name: int(value) for name, _, value in (each.partition("=") for each in options.set)}
    rows: dict[str, list[dict[str, object]]] = {}
    for kind, name, site in sites(found, options.manuals):
        if kind.startswith(options.only):
            site.settings |= own
            with workspace() as place:
                db = place / "crawl.db"
                figures = (
                    kept(site, db) if isinstance(site, ListSite) else crawled(site, db).figures()
                )
            say(f"{kind} | {name}: {figures}")
            rows.setdefault(kind, []).append(figures)
    kinds = {kind: _summed(kind, each) for kind, each in rows.items()}
    finish({"measured": True, "kinds": kinds}, options.output)


def _summed(kind: str, rows: Sequence[dict[str, object]]) -> dict[str, object]:
    sums = Counter[str]()
    for row in rows:
        sums.update({name: n for name, n in row.items() if isinstance(n, int)})
    goal = _GOALS.get(kind.partition(":")[0])
    return {
        "sites": len(rows),
        **sums,
        "fetched": round(sums["requests"] / sums["documents"], 3),
        **({} if goal is None else {"goal": goal}),
    }
