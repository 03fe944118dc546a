"""Prices, stock and dates that a page states for machines only are compared and delivered."""

import json
from collections import Counter
from typing import Any

import pytest

from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.tree import SelectorHints
from tests.crawler.reduce.kinds import SENTENCE, SHELLS, page

URL = "https://h.example/stool"


def linked(data: Any) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return f'<script type="application/ld+json">{text}</script>'


def product(offers: Any, **others: Any) -> dict[str, Any]:
    return {
        "@context": "https://schema.org/",
        "@type": "Product",
        "name": "Stool",
        "offers": offers,
        **others,
    }


def offer(price: Any = 89, **others: Any) -> dict[str, Any]:
    return {"@type": "Offer", "price": price, "priceCurrency": "EUR", **others}


def marked(inner: str) -> str:
    return (
        '<div itemscope itemtype="https://schema.org/Product"><span itemprop=name>Stool</span>'
        f'<div itemprop=offers itemscope itemtype="https://schema.org/Offer">{inner}</div></div>'
    )


def fair(day: str) -> str:
    return (
        "<div itemscope itemtype=https://schema.org/Event><b itemprop=name>Fair</b>"
        f"<meta itemprop=startDate content=2026-05-{day}></div>"
    )


def rdfa(price: str) -> str:
    return (
        '<div vocab="https://schema.org/" typeof=Product><b property=name>Stool</b>'
        f"<p property=offers typeof=Offer><meta property=price content={price}></p></div>"
    )


def prefixed(term: str) -> str:
    return (
        '<div prefix="schema: https://schema.org/" typeof="schema:Offer">'
        f'<i property="schema:availability" resource="schema:{term}"></i></div>'
    )


EVENT = {"@type": "Event", "name": "Open day"}
AWAY = {"availability": "https://schema.org/OutOfStock"}
THERE = {"availability": "https://schema.org/InStock"}
SPECIFIED = {"@type": "UnitPriceSpecification", "price": "89.00", "priceCurrency": "EUR"}
#: What a page states before and after, and the line that tells of the second.
CHANGES = {
    "number": (linked(product(offer(89))), linked(product(offer(94))), "Stool: 94 EUR"),
    "text": (linked(product(offer("89.00"))), linked(product(offer("94.50"))), "Stool: 94.50 EUR"),
    "comma": (linked(product(offer("89,00"))), linked(product(offer("94,50"))), "Stool: 94.50 EUR"),
    "sign": (linked(product(offer("€89"))), linked(product(offer("€94"))), "Stool: 94 EUR"),
    "currency": (
        linked(product(offer())),
        linked(product(offer(priceCurrency="CHF"))),
        "Stool: 89 CHF",
    ),
    "availability": (
        linked(product(offer(**THERE))),
        linked(product(offer(**AWAY))),
        "Stool: 89 EUR, out of stock",
    ),
    "short term": (
        linked(product(offer(availability="InStock"))),
        linked(product(offer(availability="PreOrder"))),
        "Stool: 89 EUR, pre order",
    ),
    "term as a node": (
        linked(product(offer(availability={"@id": "http://schema.org/InStock"}))),
        linked(product(offer(availability={"@id": "http://schema.org/SoldOut"}))),
        "Stool: 89 EUR, sold out",
    ),
    "array": (linked([product(offer())]), linked([product(offer(94))]), "Stool: 94 EUR"),
    "list of offers": (
        linked(product([offer(89, name="small"), offer(120, name="large")])),
        linked(product([offer(89, name="small"), offer(125, name="large")])),
        "large: 125 EUR",
    ),
    "graph": (
        linked({"@graph": [{"@type": "WebPage"}, product(offer())]}),
        linked({"@graph": [{"@type": "WebPage"}, product(offer(94))]}),
        "Stool: 94 EUR",
    ),
    "aggregate": (
        linked(product({"@type": "AggregateOffer", "lowPrice": 89, "highPrice": "120.00"})),
        linked(product({"@type": "AggregateOffer", "lowPrice": 89, "highPrice": "125.00"})),
        "Stool: 89–125",
    ),
    "specification": (
        linked(product({"@type": "Offer", "priceSpecification": SPECIFIED})),
        linked(product({"@type": "Offer", "priceSpecification": SPECIFIED | {"price": "94"}})),
        "Stool: 94 EUR",
    ),
    "variants": (
        linked({"@type": "ProductGroup", "hasVariant": [product(offer(), name="Oak")]}),
        linked({"@type": "ProductGroup", "hasVariant": [product(offer(94), name="Oak")]}),
        "Oak: 94 EUR",
    ),
    "item list": (
        linked({"@type": "ItemList", "itemListElement": [{"item": product(offer())}]}),
        linked({"@type": "ItemList", "itemListElement": [{"item": product(offer(94))}]}),
        "Stool: 94 EUR",
    ),
    "comma too many": (
        linked('{"@type": "Product", "offers": {"price": "89",},}'),
        linked('{"@type": "Product", "offers": {"price": "94",},}'),
        "94",
    ),
    "comma too many in an array": (
        linked('[{"@type": "Offer", "price": "89"}, {},]'),
        linked('[{"@type": "Offer", "price": "94"}, {},]'),
        "94",
    ),
    "in a comment": (
        linked(f"<!-- {json.dumps(product(offer()))} //-->"),
        linked(f"<!-- {json.dumps(product(offer(94)))} //-->"),
        "Stool: 94 EUR",
    ),
    "line breaks in a text": (
        linked('{"@type": "Product", "name": "Stool\n", "offers": {"price": 89}}'),
        linked('{"@type": "Product", "name": "Stool\n", "offers": {"price": 94}}'),
        "Stool: 94",
    ),
    "beside broken data": (
        linked("{") + linked(product(offer())),
        linked("{") + linked(product(offer(94))),
        "Stool: 94 EUR",
    ),
    "event": (
        linked(EVENT | {"startDate": "2026-05-03T10:00:00+02:00"}),
        linked(EVENT | {"startDate": "2026-05-10T10:00:00+02:00"}),
        "Open day: start date 2026-05-10 10:00",
    ),
    "hour of an event": (
        linked(EVENT | {"startDate": "2026-05-03T10:00"}),
        linked(EVENT | {"startDate": "2026-05-03T12:30"}),
        "Open day: start date 2026-05-03 12:30",
    ),
    "cancelled": (
        linked(EVENT | {"startDate": "2026-05-03", "eventStatus": "EventScheduled"}),
        linked(
            EVENT | {"startDate": "2026-05-03", "eventStatus": "https://schema.org/EventCancelled"}
        ),
        "Open day: event cancelled, start date 2026-05-03",
    ),
    "job": (
        linked({"@type": "JobPosting", "title": "Turner", "validThrough": "2026-05-03"}),
        linked({"@type": "JobPosting", "title": "Turner", "validThrough": "2026-06-03"}),
        "valid through 2026-06-03",
    ),
    "meta": (
        marked("<meta itemprop=price content=89><meta itemprop=priceCurrency content=EUR>"),
        marked("<meta itemprop=price content=94><meta itemprop=priceCurrency content=EUR>"),
        "Stool: 94 EUR",
    ),
    "link": (
        marked('<link itemprop="availability" href="https://schema.org/InStock">'),
        marked('<link itemprop="availability" href="https://schema.org/Discontinued">'),
        "Stool: discontinued",
    ),
    "content of a word": (
        marked("<b itemprop=price content=89.00>cheap</b>"),
        marked("<b itemprop=price content=94.00>cheap</b>"),
        "Stool: 94",
    ),
    "time": (fair("03"), fair("04"), "Fair: start date 2026-05-04"),
    "RDFa": (rdfa("89"), rdfa("94"), "Stool: 94"),
    "RDFa with a prefix": (prefixed("InStock"), prefixed("SoldOut"), "sold out"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", CHANGES)
def test_what_only_machines_are_told_is_compared_and_delivered(name: str, shell: str) -> None:
    before, after, line = CHANGES[name]
    old, new = (
        page(shell, f"<p>{SENTENCE}</p>{stated}", is_big=False).encode()
        for stated in (before, after)
    )
    one, other = (Counter(parse(body, URL, "text/html").blocks.texts) for body in (old, new))
    assert [*(other - one)] == [line]
    assert line in document(new, URL, "text/html").text.split("\n")
    assert len(one - other) == 1


#: What a page shows, and states, too.
SHOWN = {
    "sign before": ("<b>€ 1,234.50</b>", product(offer("1234.50"))),
    "sign behind": ("<b>1.234,50 €</b>", product(offer(1234.5))),
    "grouped": ("<b>1 234,50&nbsp;EUR</b>", product(offer("1234.50"))),
    "no cents": ("<b>89,- €</b>", product(offer("89.00"))),
    "several elements": ("<b><i>€</i>89<i>.</i><i>95</i></b>", product(offer(89.95))),
    "no currency": ("<b>89.95</b> EUR", product(offer(89.95))),
    "raised cents": ("<b>89<sup>95</sup> EUR</b>", product(offer(89.95))),
    "bounds": (
        "<b>€ 89 to € 120</b>",
        product({"lowPrice": 89, "highPrice": "120", "priceCurrency": "EUR"}),
    ),
    "in stock": ("<b>€ 89</b> <button>In stock</button>", product(offer(**THERE))),
    "sold out": ("<b>€ 89</b> <p>Sold-out!</p>", product(offer(availability="SoldOut"))),
    "date": ("<p>3 May 2026", EVENT | {"startDate": "2026-05-03"}),
    "date of days": ("<p>03.05.2026", EVENT | {"startDate": "2026-05-03T00:00:00Z"}),
    "American date": ("<p>May 3rd, 10 am", EVENT | {"startDate": "2026-05-03T10:00:00"}),
    "date with time": ("<p>Sunday, 3 May, 10:30", EVENT | {"startDate": "2026-05-03T10:30"}),
    "moment": ("<p><time datetime=2026-05-03>Sunday</time>", EVENT | {"startDate": "2026-05-03"}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_readers_see_is_not_told_twice(name: str) -> None:
    shown, stated = SHOWN[name]
    html = f"<main>{shown}<p>{SENTENCE}</p></main>"
    without = parse(html.encode(), URL, "text/html").blocks
    assert parse((html + linked(stated)).encode(), URL, "text/html").blocks == without


@pytest.mark.parametrize(
    "data",
    [
        {"@type": "Article", "headline": "A", "dateModified": "2026-05-{:02}T10:00"},
        product(offer(priceValidUntil="2026-05-{:02}")),
        product(offer(), review={"reviewRating": {"price": "{}"}}),
        product(offer(), isRelatedTo=[product(offer("{}"))]),
        product(offer(), aggregateRating={"ratingValue": "4.{}", "reviewCount": "{}"}),
        product(offer(shippingDetails={"price": "{}"})),
        product(offer(availability="")),
        {"@type": "Offer", "price": "on request", "sku": "{}"},
        {"startDate": "soon", "price": None, "availability": ["{}"]},
        {"price": True, "name": "{}"},
        '{"price": 1e999, "sku": "{}"}',
        '{"price": NaN, "sku": "{}"}',
        {"price": 10**400, "sku": "{}"},
        {"price": "9" * 400, "sku": "{}"},
        "{}",
        f"[{'[' * 20_000}",
    ],
)
def test_what_moves_by_itself_or_is_no_statement_is_not_told(data: Any) -> None:
    html = f"<main><p>{SENTENCE}</p></main>{linked(data)}"
    one, other = (html.replace("{}", n).replace("{:02}", f"0{n}") for n in "12")
    assert parse(one.encode(), URL, "text/html").blocks == (
        parse(other.encode(), URL, "text/html").blocks
    )


def test_so_many_things_are_told_of_a_page() -> None:
    html = f"<main><p>{SENTENCE}</p></main>{linked([product(offer(n)) for n in range(1, 200)])}"
    assert len(parse(html.encode(), URL, "text/html").blocks) == 51


def test_a_site_s_selectors_say_what_is_content() -> None:
    html = f"<main><p>{SENTENCE}</p></main>{linked(product(offer()))}".encode()
    for hints in (SelectorHints(include=("main",)), SelectorHints(ignore=("stated-fact",))):
        blocks = parse(html, URL, "text/html", hints=hints).blocks
        assert blocks.texts == (SENTENCE.strip(),)


def test_names_in_data_are_no_markup() -> None:
    stated = product(offer(), name="<b>Stool</b> & co")
    html = f"<main><p>{SENTENCE}</p></main>{linked(stated)}".encode()
    assert parse(html, URL, "text/html").blocks.texts[-1] == "<b>Stool</b> & co: 89 EUR"
