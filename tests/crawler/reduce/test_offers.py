"""Prices on pages: schema.org's first, then numbers with a currency."""

import json

import pytest

from freshet.crawler.reduce.offers import Offer, Offers, offers


def found(body: str, head: str = "") -> Offers:
    html = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return offers(html.encode(), "text/html; charset=utf-8")


def linked(data: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


OFFER = {"@type": "Offer", "price": "29.99", "priceCurrency": "EUR"}


@pytest.mark.parametrize(
    "data",
    [
        {"@type": "Product", "offers": OFFER},
        {"@type": "Product", "offers": [OFFER, {"price": 31}]},
        {"@type": "Product", "offers": {"@type": "AggregateOffer", "lowPrice": 29.99}},
        {"@graph": [{"@type": "WebPage"}, {"@type": "Product", "offers": OFFER}]},
        [{"@type": "BreadcrumbList"}, {"@type": "Product", "offers": OFFER}],
        {"@type": "Product", "offers": {"priceSpecification": {"price": "29,99"}}},
        {"@type": "ProductGroup", "hasVariant": [{"offers": OFFER}]},
        {"@type": "Event", "offers": {"price": 29.99}},
    ],
)
def test_a_price_of_linked_data_comes_before_others_that_the_page_shows(data: object) -> None:
    page = found('<b class="price">9,99 €</b> <p id="it">29,99 €</p>', linked(data))
    assert page.stated[0] == 29.99
    assert (page.shown[0].value, page.shown[0].selector) == (29.99, "#it")
    assert [each.is_stated for each in page.shown] == [True, False]


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ('<i itemprop="price" content="1234.5">1.234,50 €</i>', ""),
        ('<i itemprop="price">1.234,50</i> €', ""),
        ('<i property="schema:price price" content="1234.50">1 234,50 €</i>', ""),
        ("<i>€ 1,234.50</i>", '<meta property="product:price:amount" content="1234.50">'),
        ("<i>€ 1,234.50</i>", '<meta property="og:price:amount" content="1,234.50">'),
    ],
)
def test_prices_of_microdata_and_meta_elements_are_stated(body: str, head: str) -> None:
    page = found(f"<p>{body}</p>", head)
    assert page.stated == (1234.5,)
    assert [(each.value, each.is_stated) for each in page.shown] == [(1234.5, True)]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("<b>$1,299.00</b>", 1299.0),
        ("<b>1 299,00 zł</b>", 1299.0),
        ("<b>1&nbsp;299,00&nbsp;€</b>", 1299.0),
        ("<b>CHF 1'299.–</b>", 1299.0),
        ("<b>12,800円</b>", 12800.0),
        ("<b>₹ 999</b>", 999.0),
        ("<b>29,- Kč</b>", 29.0),
        ("<b>USD 0.125</b>", 0.125),
        ("<b>199 kr</b>", 199.0),
        ("<b><i>29</i><i>,99</i> €</b>", 29.99),
        ("<b><i>$</i>29<i>.</i><i>99</i></b>", 29.99),
        ("<b>29.99 EUR</b>", 29.99),
    ],
)
def test_a_number_with_a_currency_is_a_price(body: str, value: float) -> None:
    (offer,) = found(f"<p>{body}</p>").shown
    assert offer == Offer(value, offer.text, "body > p > b", "", is_stated=False)


@pytest.mark.parametrize(
    "body",
    [
        "<p>29.99</p>",
        "<p>in 2026</p>",
        "<p>29<sup>99</sup> €</p>",
        "<p>krona 12 crowns</p>",
        "<p>The euro was introduced in 1999</p>",
        "<script>var price = '$29'</script>",
        "<template><b>$29</b></template>",
        f"<p>{'word ' * 40}$29</p>",
        "<p>26.11.2026 €</p>",
        "",
    ],
)
def test_other_numbers_are_no_prices(body: str) -> None:
    assert found(f"<div>{body}</div>") == Offers()


@pytest.mark.parametrize(
    "worse",
    [
        "<del>{}</del>",
        "<s><span>{}</span></s>",
        '<span class="old-price">{}</span>',
        '<span class="price--was">{}</span>',
        "<header><p>{}</p></header>",
        "<nav><a href=/cart>{}</a></nav>",
        '<aside><span class="price">{}</span></aside>',
        "<em>{}</em>",
    ],
)
def test_former_prices_and_those_of_the_frame_come_last(worse: str) -> None:
    page = found(worse.format("$40") + '<div class="price">$30</div>')
    assert [each.value for each in page.shown] == [30, 40]


def test_a_price_behind_another_number_is_told_by_its_context() -> None:
    (offer,) = found("<p>2 pieces for 40 CHF</p>").shown
    assert (offer.value, offer.number) == (40, "2 pieces for *")


def test_each_selector_takes_one_element() -> None:
    page = found("".join(f'<li class="price">{n} €</li>' for n in range(1, 40)))
    assert len({each.selector for each in page.shown}) == len(page.shown) == 20


def test_linked_data_that_is_damaged_or_deep_is_left_out() -> None:
    deep = "[" * 100_000
    head = f'<script type="application/ld+json">{deep}</script>' + linked({"offers": OFFER})
    assert found("", head + '<script type="application/ld+json">{</script>').stated == (29.99,)


def test_a_tree_that_is_too_deep_is_refused() -> None:
    with pytest.raises(RecursionError):
        offers(b"<div>" * 300 + "1 €".encode(), "text/html", deepest=200)
