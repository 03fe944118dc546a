"""URLs that cannot exist."""

import pytest

from freshet.crawler.compare.not_content.host import probe_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.example/shop/chair.html?id=3", "https://h.example/shop/zq7.html"),
        ("https://h.example/shop/chair", "https://h.example/shop/zq7"),
        ("https://h.example/shop/sofas/", "https://h.example/shop/zq7/"),
        ("https://h.example/shop/", "https://h.example/shop/zq7/"),
        ("https://h.example/", "https://h.example/zq7"),
        ("https://h.example", "https://h.example/zq7"),
        ("https://h.example/v1.2.3-notes", "https://h.example/zq7"),
    ],
)
def test_a_probe_stands_beside_the_page_with_the_same_ending(url: str, expected: str) -> None:
    assert probe_url(url, "zq7") == expected
