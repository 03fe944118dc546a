import pytest

from freshet.crawler.synthetic_web.site import (
    Fault,
    File,
    Manifest,
    Resource,
    SyntheticSite,
    Trap,
    without_utm,
)


@pytest.mark.parametrize(
    ("target", "plain"),
    [
        ("/a?utm_source=x", "/a"),
        ("/a?b=1&utm_source=x&c=2&utm_medium=y", "/a?b=1&c=2"),
        ("/a?b=utm_source", "/a?b=utm_source"),
        ("/utm_source", "/utm_source"),
        ("/a?", "/a?"),
    ],
)
def test_only_utm_parameters_are_left_out(target: str, plain: str) -> None:
    assert without_utm(target) == plain


def test_a_site_has_a_robots_txt_if_and_only_if_it_has_a_text_for_it() -> None:
    assert SyntheticSite(name="s", title="S").find("/robots.txt") is None
    assert SyntheticSite(name="s", title="S", robots="").find("/robots.txt") is Manifest.ROBOTS


def test_a_site_knows_its_own_traps_only() -> None:
    site = SyntheticSite(name="s", title="S", traps=(Trap.CALENDAR,))
    assert site.trap("/calendar/2026/01") is Trap.CALENDAR
    assert site.trap("/rooms/1") is site.trap("/page") is None


def test_the_feed_is_found_among_the_resources() -> None:
    resources: dict[str, Resource] = {
        "/file": File("text/plain", b""),
        "/feed": Manifest.RSS,
        "/no": Fault(500),
    }
    assert SyntheticSite(name="s", title="S", resources=resources).feed == ("/feed", Manifest.RSS)
    assert SyntheticSite(name="s", title="S").feed is None
