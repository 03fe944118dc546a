"""What is set in a browser while a daemon runs, or before a crawl."""

from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run import daemon
from freshet.storage.database import write_beside
from freshet.storage.records import FetchResult
from freshet.storage.tables import runs
from freshet.storage.tables.runs import SiteSetting
from tests.integration.test_daemon import Server, Stage
from tests.storage.crawl_store import START, crawl_store, url_of, writing


@pytest.mark.long
async def test_a_daemon_visits_what_is_wished_and_takes_settings_over(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "SteadyClock", VirtualClock)
    said = {150: ("never", "true"), 250: ("never", "")}

    class Told(Server):
        async def fetch(self, request: Request) -> FetchResult:
            count, at = len(self.asked), self.clock.now()
            it = SiteSetting("news.localhost", *said.get(count, ("", "")), at)
            if count == 100:
                it = SiteSetting(self.asked[60][1], "visit", "1", at)
            if it.key:
                write_beside(stage.db, partial(runs.put_site_setting, it=it))
            return await super().fetch(request)

    stage.server = Told(stage.server.web, stage.clock)
    await stage.keep(240.0, 2.0, ["news", "docs"])
    urls = [url for _, url in stage.server.asked]
    assert urls[60] in urls[101:103]
    assert urls[60] not in urls[61:101] + urls[103:140]
    hosts = ["news" in url for url in urls]
    assert (any(hosts[152:250]), any(hosts[252:]), len(urls) > 400) == (False, True, True)
    assert stage.rows("SELECT key FROM site_setting WHERE key = 'never'") == []


async def test_what_was_wished_while_no_daemon_ran_is_visited_first(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "SteadyClock", VirtualClock)
    stage.sitemaps = False
    await stage.keep(240.0, 0.5, ["news", "docs"])
    asked = [url for _, url in stage.server.asked]
    wish = SiteSetting(asked[20], "visit", "1", stage.clock.now())
    write_beside(stage.db, partial(runs.put_site_setting, it=wish))
    await stage.keep(240.0, 0.1, ["news", "docs"])
    assert wish.match in [url for _, url in stage.server.asked[len(asked) :]][:4]
    assert not [it.message for it in caplog.records if "chore" in it.message]


async def test_a_crawl_visits_first_what_is_wished(tmp_path: Path) -> None:
    async with crawl_store(tmp_path / "crawl.db") as store:
        await store.admit("/a", "/b", "/c")
        with writing(store.database) as db:
            runs.put_site_setting(db, SiteSetting(url_of("/c"), "visit", "1", START))
            runs.put_wished_first(db, START + 1)
        assert await store.due_paths(START + 1) == ["/c", "/a", "/b"]
