"""Pages that a real Chromium renders: found, compared, archived and paid for as others."""

import asyncio
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from freshet import Store
from freshet.crawler.archive.cdxj import write_cdxj
from freshet.crawler.cli.forget import _url
from freshet.crawler.cli.replay import fill
from freshet.crawler.run.orders import CrawlReport
from freshet.crawler.tally import CrawlError
from scripts.benchmarks.memory_watch import descendants
from tests.crawler.archive.exchanges import whole
from tests.crawler.fetch.test_browser import needs_chromium
from tests.integration.quick import assert_consistent, quick
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
async def test_always_asks_without_validators_and_pays_for_every_request(tmp_path: Path) -> None:
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
    await crawled(made, tmp_path, 1, sites=tables, politeness__delay_s=5.0, crawl__patience_s=60)
    asked = [at for at, url in made.asked if url in {f"{HOME}/{name}.html" for name in "ab"}]
    # A page, its script and what that fetches: three requests, three delays.
    assert asked[1] - asked[0] >= 15.0
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
    assert seen == [("new", None)]
    assert_consistent(tmp_path / "c.db")
