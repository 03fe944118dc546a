"""What a response with the status 402 asks for."""

import base64
import json
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.prices import asked_for
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, scripted
from tests.storage.small_store import rows

ACCEPTED = {
    "scheme": "exact", "network": "base", "maxAmountRequired": "10000", "asset": "0x83",
    "extra": {"name": "USDC", "version": "2"},
}  # fmt: skip


def encoded(text: object) -> bytes:
    return base64.b64encode(json.dumps(text).encode())


@pytest.mark.parametrize(
    ("headers", "body", "words"),
    [
        ({b"crawler-price": b"USD 0.01"}, b"", "USD 0.01"),
        ({b"crawler-price": b" USD 0.01 "}, b"<p>no</p>", "USD 0.01"),
        ({}, json.dumps({"x402Version": 1, "accepts": [ACCEPTED]}).encode(), "10000 USDC on base"),
        ({}, json.dumps({"accepts": [ACCEPTED | {"extra": None}]}).encode(), "10000 0x83 on base"),
        (
            {},
            json.dumps({"accepts": [ACCEPTED, ACCEPTED | {"network": "polygon"}]}).encode(),
            "10000 USDC on base or 10000 USDC on polygon",
        ),
        (
            {b"payment-required": encoded(
                {"accepts": [{"amount": "7", "asset": "A", "network": "eip155:1"}]}
            )},
            b"<p>pay</p>",
            "7 A on eip155:1",
        ),
        # Nothing that is a price.
        ({}, b"", None),
        ({}, b"<p>Payment required</p>", None),
        ({b"crawler-price": b"  "}, b"", None),
        ({b"payment-required": b"%%%"}, b"", None),
        ({b"payment-required": encoded([])}, b"", None),
        ({}, b'{"accepts": 3}', None),
        ({}, b'{"accepts": [3, {}]}', None),
        ({}, b"[" * 100_000, None),
        # Signs for a terminal and long texts.
        ({b"crawler-price": b"USD\x1b[31m 1" + b"0" * 999}, b"", "USD[31m 1" + "0" * 51),
    ],
)  # fmt: skip
def test_a_price_is_told_in_words(
    headers: dict[bytes, bytes], body: bytes, words: str | None
) -> None:
    assert asked_for(headers.get, body) == words


async def test_the_price_stands_in_the_history_of_a_page_and_nothing_is_sent(
    tmp_path: Path,
) -> None:
    priced = {
        "/": Page('<p>The price list of the mill.</p><a href="/a">a</a> <a href="/b">b</a>'),
        "/a": Page("", 402, {"Crawler-Price": "USD 0.01"}),
        "/b": Page(json.dumps({"accepts": [ACCEPTED]}), 402, {"Content-Type": "application/json"}),
    }
    async with scripted({"a": priced}) as served:
        seeds = seeds_from_arguments([served.origin("a")]).seeds
        order = CrawlOrder(tmp_path / "crawl.db", seeds)
        await crawl(quick(), order, watch=unwatched)
    found = rows(
        tmp_path / "crawl.db",
        "SELECT substr(url, -2), kind, reason, detail FROM observation JOIN page "
        "ON page.id = page_id WHERE observation.status = 402 ORDER BY url",
    )
    assert found == [
        ("/a", "failed", "http_402", "the server asks for USD 0.01"),
        ("/b", "failed", "http_402", "the server asks for 10000 USDC on base"),
    ]
    assert served.asked("a").count("/a") == 1
    assert not any("payment" in name.lower() for sent in served.sent for name in sent)
