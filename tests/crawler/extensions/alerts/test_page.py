"""Alert rules in the browser: how they stand, tests, previews on stored versions, and new ones."""

import re
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.crawler.extensions.dashboard.test_settings_file import Settings, logged_in
from tests.storage.crawl_store import START, url_of, writing
from tests.storage.versioned_store import html

RULES = """# ours
[[alerts.rules]]
name = "quiet"
match = "https://a.example/*"
url = "log:"

[[alerts.rules]]
name = "lost"
match = "https://b.example/*"
url = "http://127.0.0.1:9/hook?token=secret-of-ours"
"""
PAGE = url_of("/a")


@pytest.fixture
async def settings(tmp_path: Path) -> AsyncIterator[Settings]:
    async with logged_in(tmp_path, RULES) as found:
        for n, price in enumerate((30, 20, 9, 25, 8)):
            body = html("The first sentence of this page stays.", f"The price: {price} EUR today.")
            await found.browser.site.shows("/a", body, at=START + 60 * n)
        yield found


async def test_each_rule_is_listed_with_its_state_and_no_secret(settings: Settings) -> None:
    with writing(settings.browser.site.store.database) as db:
        db.execute(
            "INSERT INTO alert_message (key, rule, made_at, body, state, since, next_at, said) "
            "VALUES ('k', 'lost', :at, 'b', 'failed', :at, :at, 'HTTP 410')",
            {"at": START},
        )
    body = await settings.page("/alerts")
    assert "quiet" in body
    assert "given up" in body
    assert "1 message: HTTP 410" in body
    assert "secret-of-ours" not in body
    assert (await settings.send("/alerts", do="retry", name="lost")) == (303, "/alerts")
    rows = await settings.browser.site.store.rows("SELECT state FROM alert_message")
    assert rows == [("pending",)]


async def test_a_test_says_what_the_receiver_answered(settings: Settings) -> None:
    for name, said in (("quiet", "accepted the test message"), ("lost", "refused the message")):
        assert (await settings.send("/alerts", do="test", name=name))[0] == 303
        assert said in await settings.page("/alerts")


async def test_a_number_rule_is_previewed_and_made(settings: Settings) -> None:
    asked = {"match": PAGE, "kinds": "changed gone", "below": "10"}
    body = await settings.page(f"/alerts?{urlencode(asked)}")
    assert "2 alerts in the last 4 versions" in body
    assert "20 → 9, below 10" in body
    assert "the number is 8" in body
    assert '<a href="/">Freshet</a> <span>crawl.db</span>' in body
    assert settings.file.read_text() == RULES
    form = {"do": "make", "name": "price", "url": "", "mode": "daily", **asked}
    assert await settings.send("/alerts", **form) == (303, "/alerts")
    assert settings.said["alerts"]["rules"][2] == {
        "name": "price", "match": [PAGE], "url": "log:", "kinds": ["changed", "gone"],
        "below": 10.0, "mode": "daily",
    }  # fmt: skip
    assert settings.file.read_text().startswith("# ours\n")
    assert (await settings.send("/alerts", do="remove", name="price"))[0] == 303
    assert [it["name"] for it in settings.said["alerts"]["rules"]] == ["quiet", "lost"]


async def test_words_and_any_change_are_previewed(settings: Settings) -> None:
    for asked, said in (
        ({"appears": "25 eur"}, "1 alert in the last 4 versions"),
        ({}, "4 alerts in the last 4 versions"),
        ({"within": "#none", "below": "3"}, "0 alerts in the last 4 versions"),
    ):  # fmt: skip
        assert said in await settings.page(f"/alerts?{urlencode({'match': PAGE, **asked})}"), asked
    several = await settings.page(f"/alerts?{urlencode({'match': 'https://a.example/*'})}")
    assert "a preview is of one page" in several.lower()
    unknown = await settings.page(f"/alerts?{urlencode({'match': url_of('/none')})}")
    assert "not in the store yet" in unknown


async def test_views_lead_to_a_rule_that_is_filled_in(settings: Settings) -> None:
    asked = (
        (f"/page?url={PAGE}", {"match": PAGE, "kinds": "changed gone"}),
        (f"/page/numbers?url={PAGE}&within=p",
         {"match": PAGE, "kinds": "changed gone", "below": "8", "within": "p", "number": ""}),
        (f"/changes/one?url={PAGE}&after=2", {"match": PAGE, "kinds": "changed gone"}),
        ("/changes?site=a.example&words=sold+out",
         {"match": "*://a.example/*", "kinds": "changed gone", "appears": "sold out"}),
    )  # fmt: skip
    for path, filled in asked:
        assert escape(f"/alerts?{urlencode(filled)}#new") in await settings.page(path), path


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"do": "make", "name": "a b", "match": PAGE}, "name:"),
        ({"do": "make", "name": "quiet", "match": PAGE}, "quiet occurs twice"),
        ({"do": "make", "name": "x", "match": ""}, "type the address"),
        ({"do": "make", "name": "x", "match": PAGE, "url": "nowhere"}, "neither a URL"),
        ({"do": "make", "name": "x", "match": PAGE, "below": "few"}, "few"),
        ({"do": "make", "name": "x", "match": PAGE, "within": "p["}, "within"),
        ({"do": "make", "name": "x", "match": PAGE, "mode": "yearly"}, "mode"),
        ({"do": "test", "name": "none"}, "there is no such rule"),
        ({"do": "burn", "name": "quiet"}, "accepted are make"),
    ],
)
async def test_what_is_wrong_is_refused_in_a_line(
    settings: Settings, form: dict[str, str], said: str
) -> None:
    status, text = await settings.send("/alerts", **form)
    assert (status, said in text) == (400, True), text
    assert settings.file.read_text() == RULES


async def test_a_price_leads_to_a_rule_that_reads_the_price(settings: Settings) -> None:
    for n, price in enumerate((30, 12)):
        said = html("Rated 4,5 of 5 by 7 readers.", f"Only <b id=price>{price} EUR</b> today.")
        await settings.browser.site.shows("/p", said, at=START + 600 + 60 * n)
    body = await settings.page(f"/page/numbers?url={url_of('/p')}")
    (place,) = re.findall(r'href="(/alerts[?][^"]*)#new"', body)
    assert "the number is 12 (watched: below 12)" in await settings.page(unescape(place))
