"""Pages that a real Chromium renders: found, compared, archived and paid for as others."""

import asyncio
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from freshet import Store
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.archive.cdxj import write_cdxj
from freshet.crawler.cli.forget import _url
from freshet.crawler.cli.replay import fill
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.browser.chromium import Browsers, Serve, browser_program
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import CrawlReport, DaemonOrder
from freshet.storage.records import FetchResult
from scripts.benchmarks.memory_watch import descendants
from tests.crawler.archive.exchanges import whole
from tests.crawler.extensions.browser.test_chromium_browser import needs_chromium
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.integration.test_archive import Archived
from tests.integration.test_requisites import CDN, DAY_S, HOME, TYPES, WORDS, Site, page
from tests.storage.small_store import rows

APP = """fetch('/api/news.json').then(got => got.json()).then(news => {
  document.title = news.title;
  document.querySelector('#app').innerHTML = '<img src=/a.png><main><h1>' + news.title + '</h1>' +
    news.lines.map(line => `<p>${line}</p>`).join('') + '<a href=/plain.html>plain</a></main>';
  for (const no of ['/private/x.json', '/api/post']) fetch(no, {method: no.includes('post') ?
    'POST' : 'GET'}).catch(() => 0);
  navigator.sendBeacon('https://count.tracker.test/seen', 'x');
  const spy = document.createElement('script'); spy.src = 'https://a.tracker.test/t.js';
  document.body.append(spy); })"""
SHELL = f"""<!doctype html><html lang=en><title>App</title><script src={CDN}/lib.js></script>
<body><div id=app></div><noscript>Enable JavaScript.</noscript><script src=/app.js></script>"""
LINES = [
    f"Line {n} tells what the council has decided of the bridge over river {n}." for n in "abcd"
]


def news(lines: list[str]) -> str:
    return json.dumps({"title": "News of the day", "lines": lines})


def site() -> Site:
    made = Site()
    made.types = {**TYPES, "json": "application/json"}
    made.files = {
        f"{HOME}/": SHELL,
        f"{HOME}/robots.txt": "User-agent: *\nDisallow: /private/\n",
        f"{HOME}/app.js": APP,
        f"{HOME}/api/news.json": news(LINES),
        f"{HOME}/private/x.json": "{}",
        f"{HOME}/plain.html": page("plain", "<script src=/app.js></script>"),
        f"{CDN}/robots.txt": "User-agent: *\nDisallow: /no\n",
        f"{CDN}/lib.js": "let lib = 1;",
    }
    return made


async def crawled(made: Site, folder: Path, days: float = 0.0, **changes: object) -> CrawlReport:
    made.clock.go_on_from(made.clock.now() + days * DAY_S)
    made.asked.clear()
    wanted = {"browser__render": "when-needed", "browser__blocked_hosts": ["tracker.test"]}
    return await made.crawl(folder, archive__requisites=False, **(wanted | changes))


SEEN = """SELECT p.url, o.kind, o.rung, o.status, o.reason, round(o.at, 3), o.blocks_added
FROM observation AS o JOIN page AS p ON p.id = o.page_id WHERE p.role = 'page' ORDER BY o.id"""


async def assert_archived(tmp_path: Path, text: str) -> None:
    """The archive has what was rendered, and a replay gives what the crawls gave."""
    archived = Archived.of(tmp_path / "warcs")
    archived.assert_closed()
    assert archived.urls("resource")[f"urn:dom:{HOME}/"] == 3
    # Once, and once more where it failed.
    assert archived.urls("response")[f"{HOME}/"] == 2
    # Who forgets the page forgets it, too.
    (rendered, *_) = (r for r in archived.of_kind("resource"))
    fields = {"warc-target-uri": rendered.headers["WARC-Target-URI"]}
    assert _url(SimpleNamespace(fields=fields)) == f"{HOME}/"  # type: ignore[arg-type]
    with (tmp_path / "index").open("w+") as index:
        write_cdxj(whole(tmp_path / "warcs"), index)
    settings = quick(browser__render="when-needed")
    await asyncio.to_thread(fill, tmp_path / "new.db", [tmp_path / "warcs"], settings)
    assert rows(tmp_path / "new.db", SEEN) == rows(tmp_path / "crawl.db", SEEN)
    with Store(tmp_path / "new.db") as store:
        assert store.text(f"{HOME}/") == text


@pytest.mark.long
@needs_chromium
async def test_a_page_that_needs_a_browser_is_watched_as_any_other(tmp_path: Path) -> None:
    made, db = site(), tmp_path / "crawl.db"
    report = await crawled(made, tmp_path)
    assert (report.pages, report.new) == (2, 2)
    assert made.times() == dict.fromkeys(made.files.keys() - {f"{HOME}/private/x.json"}, 1)
    assert report.fetches == len(made.asked)

    # The document is asked for without validators; it is the same, and so is what it loads.
    report = await crawled(made, tmp_path, 1)
    assert (report.unchanged, report.changed) == (2, 0)
    # The document is the same, what it loads is not.
    made.files[f"{HOME}/api/news.json"] = news([*LINES, "The bridge is open to all from today on."])
    report = await crawled(made, tmp_path, 1)
    assert (report.unchanged, report.changed) == (1, 1)
    # Its own site does not answer all that it asks: no change.
    made.statuses[f"{HOME}/api/news.json"] = 503
    report = await crawled(made, tmp_path, 1, crawl__attempts=1)
    assert (report.unchanged, report.changed, report.errors) == (1, 0, 1)
    failed = rows(db, "SELECT reason, detail FROM observation WHERE kind = 'failed'")
    assert failed == [("browser", f"{HOME}/api/news.json: the server answered 503")]
    assert_consistent(db)

    with Store(db) as store:
        document = store.page(f"{HOME}/")
        assert document.title == "News of the day"
        assert "The bridge is open to all" in document.markdown
        assert "The bridge is open to all" in str(store.diff(f"{HOME}/"))
        fed = [(each.id, each.kind) for each in store.changefeed()]
        assert [kind for url, kind in fed if url == f"{HOME}/"][-1] == "changed"

    await assert_archived(tmp_path, document.markdown)


@needs_chromium
async def test_always_asks_without_validators(tmp_path: Path) -> None:
    made = site()
    for name in "ab":
        made.files[f"{HOME}/{name}.html"] = page(
            name, "", "<script src=/app.js></script><p id=app>"
        )
    made.files[f"{HOME}/"] = page("home", "", "<a href=/a.html>a</a><a href=/b.html>b</a>")
    await crawled(made, tmp_path, browser__render="never")
    tables = [
        {"match": f"site.localhost/{name}.html", "render": "always", "render_wait": "main p"}
        for name in "ab"
    ]
    await crawled(made, tmp_path, 1, sites=tables)
    changed = rows(tmp_path / "crawl.db", "SELECT count(*) FROM observation WHERE kind = 'changed'")
    assert changed == [(2,)]


@needs_chromium
async def test_what_robots_txt_does_not_allow_is_not_loaded(tmp_path: Path) -> None:
    made = site()
    made.statuses[f"{CDN}/robots.txt"] = 500
    never = {"match": "site.localhost/api/*", "never": True}
    await crawled(made, tmp_path, sites=[never])
    assert f"{CDN}/lib.js" not in made.times()
    assert f"{HOME}/api/news.json" not in made.times()
    assert f"{HOME}/app.js" in made.times()
    kinds = rows(tmp_path / "crawl.db", "SELECT kind, reason FROM observation")
    assert kinds == [("failed", "needs_javascript")]


async def test_without_a_browser_a_crawl_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site()
    with pytest.raises(CrawlError, match=r"browser\.executable: /no/where is no program"):
        await crawled(made, tmp_path, browser__executable="/no/where")
    assert made.asked == []
    await crawled(made, tmp_path, browser__executable="/no/where", browser__render="never")


@needs_chromium
async def test_a_browser_that_fails_at_its_start_is_started_again(tmp_path: Path) -> None:
    first, program = tmp_path / "first", tmp_path / "chromium"
    first.touch()
    lines = (f"if rm '{first}' 2>/dev/null; then exit 1; fi", f'exec {browser_program("")} "$@"')
    program.write_text("\n".join(("#!/bin/sh", *lines)))
    program.chmod(0o755)
    await crawled(site(), tmp_path, browser__executable=str(program))
    assert not first.exists()
    seen = rows(tmp_path / "crawl.db", "SELECT kind, reason FROM observation")
    assert set(seen) == {("new", None)}


# -- politeness, under a virtual clock and without a browser -----------------------

API, WWW = "http://api.site.localhost", "http://www.site.localhost"
LIB, OWN, DATA = f"{CDN}/lib.js", f"{HOME}/own.json", f"{API}/x.json"


async def load(_self: Browsers, document: FetchResult, serve: Serve, _wait: object) -> FetchResult:
    """In place of a browser: ask for all that a page names, and show what comes."""
    wanted = re.findall(r"load=([^>]+)>", document.body.decode())
    got = await asyncio.gather(*(serve(url, "fetch", "GET", {}) for url in wanted))
    shown = "".join(f"<p>{each.body.decode()}</p>" for each in got if each)
    return replace(document, body=document.body + shown.encode())


class Busy(Site):
    """A site whose URLs have trouble until a time; data say when to come back."""

    until: Mapping[str, float] = MappingProxyType({})

    async def fetch(self, request: Request) -> FetchResult:
        left_s = max(0.0, self.until.get(request.url, 0.0) - self.clock.now())
        status = 500 if request.accept == "robots" else 503
        self.statuses = {request.url: status} if left_s else {}
        wish_s = left_s if request.url == DATA else None
        return replace(await super().fetch(request), retry_after_s=wish_s)

    def at(self, *urls: str) -> list[float]:
        return [at - 1.7e9 for at, url in self.asked if url in urls]

    async def load(
        self, folder: Path, pages: Mapping[str, Sequence[str]], **changes: object
    ) -> CrawlReport:
        """Crawl pages that load these URLs."""
        for url, needs in pages.items():
            self.files[url] = page(url, "", "".join(f"<i load={each}></i>" for each in needs))
        settings = quick(
            browser__render="always", crawl__patience_s=999, politeness__back_off_initial_s=60,
            politeness__back_off_jitter=0, politeness__retry_after_cap_s=999, **changes,
        )  # fmt: skip
        order = CrawlOrder(folder / "crawl.db", seeds_from_arguments(list(pages)).seeds)
        return await crawl(settings, order, watch=unwatched, fetcher=self, clock=self.clock)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    monkeypatch.setattr(Browsers, "show", load)
    monkeypatch.setattr(
        "freshet.crawler.extensions.browser.chromium.browser_program", lambda _: "/chromium"
    )
    made = Busy()
    made.files = {LIB: "1", OWN: "2", DATA: "3"}
    return made


async def test_each_request_of_a_load_takes_its_host_a_delay(tmp_path: Path, busy: Busy) -> None:
    pages, of_cdn = [f"{HOME}/{n}" for n in range(3)], [f"{CDN}/{n}" for n in range(4)]
    needs = dict.fromkeys(pages, (OWN, OWN, LIB, LIB)) | dict.fromkeys(of_cdn, ())
    report = await busy.load(tmp_path, needs, politeness__delay_s=5.0)
    assert (report.pages, report.fetches) == (7, len(busy.asked))
    assert busy.at(*pages) == [5.0, 20.0, 35.0]
    # Whatever was asked of a host before one of its turns has been waited for.
    asked = [(at, url) for at, url in busy.asked if url.startswith(CDN)]
    waited = [at - asked[0][0] >= 5.0 * n for n, (at, url) in enumerate(asked) if url in of_cdn]
    assert (len(asked), waited) == (11, [True] * 4)


async def test_the_budget_of_a_daemon_pays_for_all_of_a_load(tmp_path: Path, busy: Busy) -> None:
    busy.files[f"{HOME}/"] = page("home", "", f"<i load={OWN}></i>" * 5)
    seeds = seeds_from_arguments([f"{HOME}/"]).seeds
    order = DaemonOrder(tmp_path / "crawl.db", seeds, 480.0, "site_clock", DAY_S)
    always = quick(browser__render="always")
    await keep(always, order, watch=unwatched, fetcher=busy, clock=busy.clock)
    assert 470 <= len(busy.asked) <= 490
    assert len(busy.at(OWN)) == 5 * len(busy.at(f"{HOME}/"))


async def test_a_page_waits_for_a_host_of_its_site_that_is_parked(
    tmp_path: Path, busy: Busy
) -> None:
    busy.until = {DATA: busy.clock.now() + 600.0}
    pages = {f"{host}/{n}": [DATA] for host in (HOME, WWW) for n in range(3)}
    report = await busy.load(tmp_path, pages, crawl__attempts=1, politeness__delay_s=5.0)
    # The one that got the answer is not tried again; the other has not been tried.
    assert report.pages == 5
    assert [at for at in busy.at(DATA, f"{API}/robots.txt") if at < 600.0] == [5.0, 5.0]
    kinds = "SELECT reason, count(*) FROM observation WHERE kind = 'failed' GROUP BY reason"
    assert rows(tmp_path / "crawl.db", kinds) == [("browser", 1), ("parked_host", 1)]
    assert [at < 600.0 for at in busy.at(*pages)] == [True] * 2 + [False] * 5


async def test_what_another_host_answers_to_a_load_holds_for_all_that_is_asked_of_it(
    tmp_path: Path, busy: Busy
) -> None:
    robots = "http://other.localhost/robots.txt"
    busy.until = {LIB: busy.clock.now() + 50.0, robots: busy.clock.now() + 50.0}
    needs = (OWN, LIB, robots.replace("robots", "a"), robots.replace("robots", "b"))
    pages, of_cdn = [f"{HOME}/{n}" for n in range(4)], [f"{CDN}/{n}" for n in range(3)]
    wanted = dict.fromkeys(pages, needs) | dict.fromkeys(of_cdn, ())
    assert (await busy.load(tmp_path, wanted, politeness__delay_s=15.0)).pages == 7
    assert busy.at(*pages) == [15.0, 45.0, 75.0, 105.0]
    # Neither a load nor a turn of its own asks a host while it is parked.
    assert busy.at(LIB) == [15.0, 75.0, 105.0]
    assert busy.at(robots) == [15.0, 75.0]
    assert [15.0 < at < 75.0 for at in busy.at(*of_cdn)] == [False] * 3


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").exists()


class Slow(http.server.BaseHTTPRequestHandler):
    """A page whose script asks for what takes its time."""

    def do_GET(self) -> None:
        fetch = "<script>fetch('/slow').then(g => g.text()).then(t => document.write(t))</script>"
        body = {"/": fetch, "/slow": WORDS}.get(self.path, "")
        if self.path == "/slow":
            time.sleep(5)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        # A client that was killed does not wait for it.
        with suppress(OSError):
            self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.long
@needs_chromium
def test_a_kill_leaves_no_browser_and_loses_no_page(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    command = [
        str(Path(sys.executable).with_name("freshet")), "crawl", "--allow-private-addresses",
        f"http://127.0.0.1:{server.server_port}/", "--db", str(tmp_path / "c.db"), "--delay", "0",
    ]  # fmt: skip
    environment = {**os.environ, "FRESHET_BROWSER__RENDER": "always"}
    killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while len(browsers := descendants(killed.pid)) < 6:
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    ends_at = time.monotonic() + 20
    while any(map(exists, browsers)) and time.monotonic() < ends_at:
        time.sleep(0.05)
    assert not any(map(exists, browsers))

    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    server.shutdown()
    serving.join()
    server.server_close()
    seen = rows(tmp_path / "c.db", "SELECT kind, reason FROM observation")
    assert set(seen) == {("new", None)}
    assert_consistent(tmp_path / "c.db")
