"""What the URL of a duplicate says of it."""

import pytest

from freshet.crawler.compare.near_duplicates import Variant, variant

PAGE = "https://a.example/news/storm"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://b.example/news/storm", "mirror"),
        ("https://www.a.example/news/storm", "mirror"),
        ("http://a.example/news/storm", "mirror"),
        ("https://a.example:8443/print/storm", "mirror"),
        ("https://a.example/news/storm?print=1", "printer_version"),
        ("https://a.example/news/storm/print", "printer_version"),
        ("https://a.example/news/storm?view=Print", "printer_version"),
        ("https://a.example/news/storm-druckversion.html", "printer_version"),
        ("https://a.example/news/storm?sort=up", "parameters"),
        ("https://a.example/news/storm?", "parameters"),
        ("https://a.example/news/reprinted/storm", "other"),
        ("https://a.example/archive/storm", "other"),
    ],
)
def test_the_difference_between_two_urls_names_the_kind(url: str, kind: Variant) -> None:
    assert variant(url, PAGE) == kind
    assert variant(PAGE, url) == kind


def test_where_both_urls_say_print_neither_is_the_printer_version() -> None:
    one, other = "https://a.example/print/shop?page=1", "https://a.example/print/shop?page=2"
    assert variant(one, other) == "parameters"
