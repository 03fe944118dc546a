import pytest

from freshet.crawler.robots.parser import parse
from freshet.crawler.synthetic_web.difficult_sites import guarded
from freshet.crawler.synthetic_web.web import WebSpec

SITE = guarded(WebSpec().plot("guarded", pages=14))
ROBOTS = parse((SITE.robots or "").encode())


@pytest.mark.parametrize("target", [target for target, _ in SITE.documents()])
def test_robots_txt_forbids_exactly_what_the_truth_says(target: str) -> None:
    url = f"http://guarded.localhost{target}"
    assert ROBOTS.allows("freshet", url) == (target not in SITE.forbidden)
    assert not ROBOTS.allows("otherbot", url)


def test_robots_txt_asks_for_a_delay_from_everybody_else() -> None:
    assert ROBOTS.crawl_delay_s("freshet") == 0.2
