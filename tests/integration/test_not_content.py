"""Pages answered with 200 that are no content, end to end."""

from dataclasses import replace
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.crawl import print_outcomes
from freshet.crawler.extensions.lab.synthetic_web.difficult_sites import guarded, statuses
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from freshet.crawler.run.status import read_status
from freshet.storage.records import FetchResult
from tests.crawler.extensions.alerts.test_alerts import receiving
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import rows

FRAME = "<nav><a href=/>Home</a> <a href=/a>A</a> <a href=/b>B</a> <a href=/gone>C</a></nav>"
LOST = Page(
    f"<title>Page not found</title>{FRAME}<main><h1>Page not found</h1>"
    "<p>Sorry, the page that you were looking for does not exist.</p></main>"
)


# Words that no list knows: only the likeness tells.
UNKNOWN = "Valahol egészen biztosan máshol van az, amit ezen a lapon keresel, kedves látogató."


WALL = str(LOST.body).encode()


class Everywhere(dict[str, Page]):
    """A host that answers for what does not exist with a page."""

    lost = Page(f"<title>Ez nincs</title>{FRAME}<main><h1>Ez nincs itt</h1><p>{UNKNOWN}</p></main>")

    def get(self, target: str, default: Page | None = None) -> Page:  # type: ignore[override]
        return Page("", 404) if target == "/robots.txt" else super().get(target, self.lost)


def content(words: str) -> Page:
    return Page(
        f"<title>{words}</title>{FRAME}<main><h1>{words}</h1><p>All that there is to say about "
        f"{words} is said on this page, which has its own words of {words}.</p></main>"
    )


PAGES = {"/": content("home"), "/a": content("apples"), "/b": content("beetroot"), "/gone": LOST}


def remarked(page: Page) -> Page:
    assert isinstance(page.body, str)
    return replace(page, body=page.body + "<!-- -->")


async def crawled(web: Scripted, db: Path, **settings: object) -> CrawlReport:
    seeds = seeds_from_arguments([web.origin("h")]).seeds
    return await crawl(
        quick(**{"change__probe": True, **settings}),
        CrawlOrder(db, seeds, resume=False),
        watch=unwatched,
    )


def last(db: Path, path: str) -> tuple[str, str | None, bool]:
    """Kind and reason of the last observation of a page, and whether it has content."""
    ((kind, reason, has_content),) = rows(
        db,
        "SELECT o.kind, o.reason, p.body_digest IS NOT NULL FROM page AS p "
        "JOIN finding AS o ON o.page_id = p.id WHERE p.url LIKE ? ORDER BY o.id DESC LIMIT 1",
        f"%{path}",
    )
    return kind, reason, bool(has_content)


async def test_a_page_like_that_of_a_url_that_cannot_exist_is_doubtful_in_any_language(
    tmp_path: Path,
) -> None:
    db, pages = tmp_path / "c.db", Everywhere(PAGES)
    del pages["/gone"]
    async with scripted({"h": pages}) as web:
        report = await crawled(web, db)
    assert last(db, "/gone") == ("new", "doubtful", True)
    assert report.pages == 4
    probes = [path for path in web.asked("h") if path not in {*PAGES, "/robots.txt"}]
    assert len(probes) == 1


async def test_content_that_gives_way_to_a_wall_and_comes_back_was_never_away(
    tmp_path: Path,
) -> None:
    db, pages = tmp_path / "c.db", dict(PAGES)
    async with scripted({"h": pages}) as web:
        await crawled(web, db)
        pages["/a"] = LOST
        await crawled(web, db)
        assert last(db, "/a") == ("changed", "doubtful", True)
        pages["/a"] = PAGES["/a"]
        await crawled(web, db)
    assert findings(db, "/a") == [
        ("new", None, "new"), ("failed", "soft_404", "changed"), ("changed", "return", "changed"),
    ]  # fmt: skip


async def test_content_that_gives_way_to_a_proven_wall_is_not_changed(tmp_path: Path) -> None:
    db, pages = tmp_path / "c.db", Everywhere(PAGES)
    pages.lost = LOST
    async with scripted({"h": pages}) as web:
        await crawled(web, db)
        pages["/a"] = LOST
        report = await crawled(web, db)
        assert last(db, "/a") == ("failed", "soft_404", True)
        assert report.changed == 0
        pages["/a"] = PAGES["/a"]
        await crawled(web, db)
    assert last(db, "/a") == ("unchanged", None, True)


def findings(db: Path, path: str) -> list[tuple[str, str | None, str]]:
    """Kind and reason of all observations of a page as they are seen today, and as made."""
    return rows(
        db,
        "SELECT o.kind, o.reason, o.first_kind FROM page AS p "
        "JOIN finding AS o ON o.page_id = p.id WHERE p.url LIKE ? ORDER BY o.id",
        f"%{path}",
    )


def versions(db: Path, path: str) -> int:
    kept = "SELECT 1 FROM version AS v JOIN page AS p ON p.id = v.page_id WHERE p.url LIKE ?"
    return len(rows(db, kept, f"%{path}"))


async def test_what_was_delivered_as_content_stays_when_a_probe_shows_it(tmp_path: Path) -> None:
    db, pages = tmp_path / "c.db", Everywhere(PAGES)
    del pages["/gone"]
    async with scripted({"h": pages}) as web:
        # Nobody asks what the host shows for what does not exist.
        await crawled(web, db, change__probe=False)
        await crawled(web, db, change__probe=False)
        pages["/gone"] = remarked(Everywhere.lost)
        pages["/a"] = remarked(PAGES["/a"])
        await crawled(web, db)
    assert findings(db, "/gone") == [
        ("new", None, "new"), ("unchanged", None, "unchanged"),
        ("unchanged", "doubtful", "unchanged"),
    ]  # fmt: skip
    assert [kind for kind, _, _ in findings(db, "/a")] == ["new", "unchanged", "unchanged"]


async def test_a_doubtful_page_that_a_probe_proves_is_taken_back_at_its_next_visit(
    tmp_path: Path,
) -> None:
    db, pages = tmp_path / "c.db", Everywhere(PAGES)
    pages.lost = LOST
    async with scripted({"h": pages}) as web:
        await crawled(web, db, change__probe=False)
        assert findings(db, "/gone") == [("new", "doubtful", "new")]
        pages["/gone"] = remarked(LOST)
        await crawled(web, db)
    assert [each[:2] for each in findings(db, "/gone")] == [("failed", "soft_404")] * 2
    assert versions(db, "/gone") == 0


async def test_a_wall_over_contents_is_refused_and_its_first_capture_taken_back(
    tmp_path: Path,
) -> None:
    db, names = tmp_path / "c.db", ("a", "b", "c")
    menu = "".join(f"<a href=/{name}>{name}</a> " for name in names)
    pages = {f"/{name}": content(f"words of {name} alone") for name in names}
    pages["/"] = Page(f"<title>Home</title>{menu}<main><h1>Home of the words</h1></main>")
    before = dict(pages)
    async with scripted({"h": pages}) as web:
        await crawled(web, db, change__probe=False)
        pages.update({f"/{name}": LOST for name in names})
        report = await crawled(web, db, change__probe=False)
        assert (report.changed, report.reasons["failed: soft_404"]) == (1, 2)
        pages.update(before)
        report = await crawled(web, db, change__probe=False)
    assert (report.changed, report.unchanged) == (1, 3)
    assert [findings(db, f"/{name}")[1][:2] for name in names] == [("failed", "soft_404")] * 3
    assert len(rows(db, "SELECT title FROM page WHERE title LIKE 'words%'")) == 3
    # Links that the block page did not have are current again.
    assert rows(db, "SELECT count(*) FROM link WHERE gone_at IS NULL") == [(3 + 3 * 4,)]


class Losing:
    """The synthetic web, of which hosts answer with a page for what is not there.

    ``lost`` are the ends of URLs that are not there either.
    """

    def __init__(self, web: SyntheticWeb) -> None:
        self._fetcher = SyntheticFetcher(web, lambda: web.start_at)
        self.origins = [self._fetcher.addresses.origin(name) for name in web.sites]
        self.lost: tuple[str, ...] = ()

    async def fetch(self, request: Request) -> FetchResult:
        """The web's own answer, or the page."""
        result = await self._fetcher.fetch(request)
        is_page = request.accept in {"page", "probe"}
        is_lost = result.outcome == "gone" or request.url.endswith(self.lost or ("\0",))
        if not (is_page and is_lost):
            return result
        return replace(
            result, outcome="fetched", status=200, reason=None, detail=None, body=WALL,
            headers=((b"Content-Type", b"text/html; charset=utf-8"),), wire_body=WALL,
        )  # fmt: skip


async def test_in_the_synthetic_web_walls_that_a_probe_shows_are_refused(tmp_path: Path) -> None:
    db, spec = tmp_path / "c.db", WebSpec(hosts=2, seed=3)
    sites = [statuses(spec.plot("status")), guarded(spec.plot("guarded", pages=14))]
    losing = Losing(spec.web(sites))
    losing.lost = ("/guide", "/searching-tips")
    order = CrawlOrder(db, seeds_from_arguments(losing.origins).seeds, resume=False)
    settings = quick(change__probe=True)
    report = await crawl(settings, order, watch=unwatched, fetcher=losing)
    for path in ("/gone", "/missing", "/guide", "/searching-tips"):
        assert all(each[:2] == ("failed", "soft_404") for each in findings(db, path)), path
        assert versions(db, path) == 0
    assert report.reasons["failed: soft_404"] == 4
    assert_consistent(db)
    losing.lost = ()
    report = await crawl(settings, order, watch=unwatched, fetcher=losing)
    assert [findings(db, path)[-1][0] for path in ("/guide", "/searching-tips")] == ["new", "new"]
    assert (report.new, report.changed) == (2, 0)


@pytest.mark.parametrize("limit", [1, 2])
async def test_visits_that_wait_for_a_probe_do_not_hold_up_a_run_that_ends(
    tmp_path: Path, limit: int
) -> None:
    async with scripted({"h": PAGES}) as web:
        report = await crawled(web, tmp_path / "c.db", crawl__max_pages=limit)
    assert report.pages == limit


SHELL = Page(
    "<title>Shop</title><noscript>Please enable JavaScript.</noscript><div id=root></div>"
    "<script type=module src=/app.js></script>",
    headers={"ETag": '"shell"'},
)


async def test_a_page_that_needs_javascript_is_counted_and_its_text_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, pages = tmp_path / "c.db", PAGES | {"/gone": SHELL}
    async with scripted({"h": pages}) as web:
        report = await crawled(web, db)
        assert (report.pages, report.errors) == (3, 1)
        assert last(db, "/gone") == ("failed", "needs_javascript", False)
        pages["/a"] = SHELL
        for _ in range(2):
            report = await crawled(web, db)
            assert (report.changed, report.gone, report.pages) == (0, 0, 2)
            assert last(db, "/a") == ("failed", "needs_javascript", True)
        print_outcomes(report)
        assert "2 pages need JavaScript and could not be read" in capsys.readouterr().out
        status = await read_status(db, 0.0)
        assert status.as_json()["needs_javascript"] == {web.origin("h"): 2}
        pages["/a"] = PAGES["/a"]
        await crawled(web, db)
    assert last(db, "/a") == ("unchanged", None, True)


def links_to(pages: dict[str, Page]) -> Page:
    links = "".join(f"<a href={path}>{path}</a> " for path in pages)
    return Page(f"<title>Home</title><nav>{links}</nav><main><h1>Home of the words</h1></main>")


async def test_a_host_of_which_many_pages_are_no_content_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "c.db"
    proven = Page(str(LOST.body).replace("<nav>", '<script>page = {"status": 404}</script><nav>'))
    pages = {f"/{n}": proven if n < 4 else content(f"words of {'abcdefgh'[n]}") for n in range(8)}
    pages["/"] = links_to(pages)
    async with scripted({"h": pages}) as web:
        with receiving() as (url, told):
            rule = {"name": "all", "match": "*", "url": url}
            report = await crawled(web, db, alerts__rules=[rule])
        (host,) = report.rejecting
        assert (host.origin, host.rejected, host.pages) == (web.origin("h"), 4, 9)
        print_outcomes(report)
        words = f"4 of 9 pages of {web.origin('h')} (44 %) are no content, mostly soft_404"
        assert words in " ".join(capsys.readouterr().out.split())
        status = await read_status(db, 0.0)
        assert [each.words for each in status.rejecting] == [words]
    (message,) = told
    assert (message["type"], message["data"]["kind"]) == ("page.rejected", "rejected")
    assert message["data"]["reason"] == "soft_404"
    assert "pages of" in message["data"]["summary"]


async def test_announcements_of_releases_are_all_kept(tmp_path: Path) -> None:
    db, numbers = tmp_path / "c.db", ["1.4.2", "1.5.0", "1.5.1", "2.0.0", "2.1.3", "2.2.0"]
    pages = {
        f"/news/{n}": Page(
            f"<title>Release {n}</title>{FRAME}<main><h1>Release {n}</h1><p>Version {n} was "
            "withdrawn: it is no longer available. An error in the packages could damage an index."
            f"</p><p><a href=/get/{n}>Download {n}</a></p></main>"
        )
        for n in numbers
    }
    pages["/"] = links_to(pages)
    async with scripted({"h": pages}) as web:
        for kind in ("new", "unchanged"):
            report = await crawled(web, db)
            found = {findings(db, f"/news/{n}")[-1][0] for n in numbers}
            assert found == {kind}
            assert report.rejecting == []
