import pytest

from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.site import Addresses, authority


def test_sites_are_named_below_localhost() -> None:
    addresses = Addresses.named(["news"], 8080)
    assert addresses.url(Place("news", "/a?b")) == "http://news.localhost:8080/a?b"
    assert Addresses.named(["news"]).origin("news") == "http://news.localhost"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://news.localhost:81/a?b#c", Place("news", "/a?b")),
        ("http://NEWS.localhost:81", Place("news", "/")),
        ("http://news.localhost:81?x=/y", Place("news", "/?x=/y")),
        ("https://news.localhost:81/", None),
        ("http://news.localhost/", None),
        ("http://else.localhost:81/", None),
        ("mailto:news", None),
    ],
)
def test_a_url_is_a_place_of_this_web_or_none(url: str, place: Place | None) -> None:
    assert Addresses.named(["news"], 81).place(url) == place


def test_the_port_of_http_is_not_written() -> None:
    assert authority("127.0.0.1", 80) == "127.0.0.1"
    assert authority("127.0.0.1", 81) == "127.0.0.1:81"
