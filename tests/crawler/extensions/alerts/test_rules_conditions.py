"""Rules with a condition: what of a page's text they watch, and which changes they tell."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.alerts.rules import Condition, condition_of
from freshet.crawler.extensions.alerts.settings import AlertRuleSettings
from freshet.crawler.reduce.numbers import joined, value_of
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.crawler.extensions.alerts.test_alerts import receiving
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import rows


def condition(**said: Any) -> Condition:
    rule = AlertRuleSettings.model_validate(
        {"name": "r", "match": "*", "url": "https://hooks.example/"} | said
    )
    found = condition_of(rule)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("12", 12), ("12.50", 12.5), ("12,5", 12.5), ("1,234.50", 1234.5), ("1.234,50", 1234.5),
        ("1 234", 1234), ("1 234 567,5", 1234567.5), ("1'234.50", 1234.5), ("1’234", 1234),
        ("1,23,456.78", 123456.78), ("1.234.567", 1234567),
        ("1234.567", 1234.567), ("1 234.567", 1234.567),
        # One mark before three digits groups, unless a zero or four digits come before it.
        ("1.234", 1234), ("1,234", 1234), ("0.125", 0.125), ("0,125", 0.125),
        ("26.11.2026", None), ("1.2.3", None), ("1,234.5,6", None), ("12.5,3", None),
        ("9" * 400, None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(said: str, value: float | None) -> None:
    assert value_of(said) == value


@pytest.mark.parametrize(
    ("number", "text", "value"),
    [
        (None, "From 26.11.2026 on: EUR 12.50 or 13", 12.5),
        ("price", "Was 99.- PRICE:\u00a0€\u00a01\u202f234,50", 1234.5),
        ("price: *", "Weight: 3 kg\nPrice:\n-2.5", -2.5),
        ("* in stock", "Save 20 %, 7 of 9 pieces in stock", 9),
        ("between * and", "between 3 and 4", 3),
        ("* of 9 pieces", "7 of 9 pieces", 7),
        ("rooms", "Room 5", None),
        ("price", "Price on request", None),
        (None, "Sizes 10-20", 10),
        (None, "-5 °C", -5),
        ("at", "Outside: at \u22125,5 degrees", -5.5),
        # No number spans two blocks.
        (None, "5\n200", 5),
    ],
)
def test_the_number_is_found_by_the_text_around_it(
    number: str | None, text: str, value: float | None
) -> None:
    assert condition(above=1, number=number).read(joined(text.split("\n"))) == value


def test_texts_are_compared_as_people_read_them() -> None:
    it = condition(appears=["Sold  out", "ﬁnal"], vanishes="In stock")
    assert it.fired(["IN STOCK"], ["Now so\u00adld\u00a0OUT,", "final sale"]) == [
        {"what": "appears", "text": "Sold  out"}, {"what": "appears", "text": "ﬁnal"},
        {"what": "vanishes", "text": "In stock"},
    ]  # fmt: skip
    assert it.fired(["sold out"], ["sold", "out, and in stock"]) == []


def test_a_bound_is_crossed_once_in_each_direction() -> None:
    it = condition(above=100, below=90)
    seen = ["95", "101", "150", "100", "89.5", "80", "90", "89"]
    found = [it.fired([old], [new]) for old, new in pairwise(seen)]
    assert [[each["what"] for each in one] for one in found] == [
        ["above"], [], [], ["below"], [], [], ["below"],
    ]  # fmt: skip
    assert found[3] == [{"what": "below", "bound": 90.0, "before": 100.0, "after": 89.5}]


def test_a_number_that_was_not_there_counts_as_within_and_its_loss_is_told() -> None:
    it = condition(above=100)
    assert [each["what"] for each in it.fired([], ["120"])] == ["above"]
    assert it.fired([], ["80"]) == []
    assert it.fired(["80"], ["ask"]) == [{"what": "no number", "before": 80.0, "after": None}]
    assert it.fired(["ask"], ["call"]) == []


def test_a_wrong_selector_is_told_with_its_rule() -> None:
    with pytest.raises(CrawlError, match=r"rules: r: within: 'a\[' is not a CSS selector"):
        condition(appears="x", within="a[")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"number": "price"}, "should come with above or below"),
        ({"within": ".price"}, "should come with appears or vanishes or above or below"),
        ({"above": 1, "number": "* to *"}, "should have one"),
        ({"appears": [" "]}, "appears"),
        ({"above": True}, "not true or false"),
        ({"appears": []}, "appears"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        condition(**said)


# -- in crawls ---------------------------------------------------------------

#: The hour of a daily message that is not due during the test.
LATER = (datetime.now(UTC).hour + 12) % 24
SHOP = (
    "<title>Tea</title><nav>5 teas</nav><main><h1>Green tea</h1><p>{}</p><p>From the hills, picked "
    "by hand in spring, dried in the sun and sent in tins.</p><b class=price>{}</b></main>"
)


class Shop:
    """A shop with one page, and a crawl of it with rules that post to a receiver."""

    def __init__(self, db: Path, web: Scripted, pages: dict[str, Page], url: str) -> None:
        self.db, self.web, self.pages, self.url = db, web, pages, url

    async def shows(self, stock: str, price: str, *rules: dict[str, Any]) -> None:
        self.pages["/"] = Page(SHOP.format(stock, price))
        # What differs at every visit would be noise.
        for _ in range(2):
            await self.crawl(*rules)

    async def crawl(self, *rules: dict[str, Any], **changes: Any) -> None:
        all_of = {"match": "*", "url": self.url, "kinds": ["new", "changed", "gone"]}
        settings = quick(alerts__rules=[all_of | rule for rule in rules], **changes)
        seeds = seeds_from_arguments([self.web.origin("h")]).seeds
        await crawl(settings, CrawlOrder(self.db, seeds), watch=unwatched)


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[tuple[Shop, list[dict[str, Any]]]]:
    pages: dict[str, Page] = {}
    with receiving() as (url, told):
        async with scripted({"h": pages}) as web:
            yield Shop(folder / "c.db", web, pages, url), told


def causes(told: list[dict[str, Any]], rule: str) -> list[list[str]]:
    data = [each["data"] for each in told if each["data"]["rule"] == rule]
    return [[cause["what"] for cause in each["because"]] for each in data]


async def test_an_alert_is_sent_where_its_rule_holds_and_says_so(tmp_path: Path) -> None:
    price = {"name": "price", "within": ".price", "below": 10}
    stock = {"name": "stock", "appears": "sold out", "vanishes": "In stock"}
    plain = {"name": "plain"}
    async with shop(tmp_path) as (it, told):
        for states in (("In stock", "12,50 €"), ("in  STOCK!", "11 €"), ("In stock", "9,99 €"),
                       ("Sold out", "9.50 €"), ("Back soon", "on request")):  # fmt: skip
            await it.shows(*states, price, stock, plain)
        it.pages["/"] = Page("", 410)
        await it.crawl(price, stock, plain)
    assert causes(told, "price") == [["below"], ["no number"]]
    assert causes(told, "stock") == [["appears", "vanishes"]]
    data = [each["data"] for each in told]
    assert [each["kind"] for each in data if each["rule"] == "plain"] == [
        "new", *["changed"] * 4, "gone",
    ]  # fmt: skip
    assert {each["because"] is None for each in data if each["rule"] == "plain"} == {True}
    cheaper = next(each for each in data if each["rule"] == "price")
    assert cheaper["because"] == [{"what": "below", "bound": 10.0, "before": 11.0, "after": 9.99}]
    assert cheaper["summary"].startswith("11 → 9.99, below 10; ")
    # What a rule does not want is forgotten: it neither waits nor counts as failed.
    sql = "SELECT count(*) FROM alert WHERE message_id IS NULL"
    assert rows(it.db, sql) == [(0,)]
    assert rows(it.db, "SELECT DISTINCT state FROM alert_message") == [("sent",)]


async def test_a_page_that_is_new_has_no_text_before_and_a_page_that_is_gone_none_after(
    tmp_path: Path,
) -> None:
    rule = {"name": "tea", "appears": ["green"], "vanishes": ["green"], "above": 4, "within": "h1"}
    async with shop(tmp_path) as (it, told):
        await it.shows("In stock", "5", rule)
        it.pages["/"] = Page("", 410)
        await it.crawl(rule)
    assert [each["type"] for each in told] == ["page.new", "page.gone"]
    assert causes(told, "tea") == [["appears"], ["vanishes"]]


async def test_a_digest_holds_only_what_its_rule_wants(tmp_path: Path) -> None:
    rule = {"name": "day", "appears": "sold out", "mode": "daily", "hour": LATER}
    async with shop(tmp_path) as (it, told):
        for stock in ("In stock", "Few left", "Sold out", "Back soon"):
            await it.shows(stock, "5", rule)
        assert told == []
        await it.crawl(rule | {"mode": "immediate"})
    assert causes(told, "day") == [["appears"]]


async def test_a_change_whose_texts_are_not_kept_is_told_with_the_reason(tmp_path: Path) -> None:
    rule = {
        "name": "stock", "appears": "sold out", "kinds": ["changed"],
        "mode": "daily", "hour": LATER,
    }  # fmt: skip
    async with shop(tmp_path) as (it, told):
        await it.shows("In stock", "5", rule)
        await it.shows("Sold out", "5", rule)
        await it.crawl(rule, store__bodies_per_page=1)
        await it.crawl(rule | {"mode": "immediate"})
    (only,) = [each["data"] for each in told]
    (cause,) = only["because"]
    assert cause["what"] == "not judged"
    assert cause["why"].startswith("the bytes of version 1 are not kept")
    assert only["summary"].startswith("not judged: the bytes of version 1 are not kept")
