import pytest

from freshet.crawler.robots.robots_txt import parse
from freshet.crawler.synthetic_web.presets import WebSpec
from freshet.crawler.synthetic_web.sites.guarded import guarded

SITE = guarded(WebSpec().plot("guarded", pages=14))
ROBOTS = parse((SITE.robots or "").encode())


@pytest.mark.parametrize("target", [target for target, _ in SITE.documents()])
def test_robots_txt_forbids_exactly_what_the_truth_says(target: str) -> None:
    url = f"http://guarded.localhost{target}"
    assert ROBOTS.allows("freshet", url) == (target not in SITE.forbidden)
    assert not ROBOTS.allows("otherbot", url)


def test_robots_txt_asks_for_a_delay_from_everybody_else() -> None:
    assert ROBOTS.crawl_delay_s("freshet") == 0.2
