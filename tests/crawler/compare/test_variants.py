"""What the URL of a duplicate says of it."""

import pytest

from freshet.crawler.compare.near_duplicates import Variant, variant

PAGE = "https://a.example/news/storm"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://b.example/news/storm", Variant.MIRROR),
        ("https://www.a.example/news/storm", Variant.MIRROR),
        ("http://a.example/news/storm", Variant.MIRROR),
        ("https://a.example:8443/print/storm", Variant.MIRROR),
        ("https://a.example/news/storm?print=1", Variant.PRINTER_VERSION),
        ("https://a.example/news/storm/print", Variant.PRINTER_VERSION),
        ("https://a.example/news/storm?view=Print", Variant.PRINTER_VERSION),
        ("https://a.example/news/storm-druckversion.html", Variant.PRINTER_VERSION),
        ("https://a.example/news/storm?sort=up", Variant.PARAMETERS),
        ("https://a.example/news/storm?", Variant.PARAMETERS),
        ("https://a.example/news/reprinted/storm", Variant.OTHER),
        ("https://a.example/archive/storm", Variant.OTHER),
    ],
)
def test_the_difference_between_two_urls_names_the_kind(url: str, kind: Variant) -> None:
    assert variant(url, PAGE) is kind
    assert variant(PAGE, url) is kind


def test_where_both_urls_say_print_neither_is_the_printer_version() -> None:
    one, other = "https://a.example/print/shop?page=1", "https://a.example/print/shop?page=2"
    assert variant(one, other) is Variant.PARAMETERS
