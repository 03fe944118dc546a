"""The defaults of the crawler's own rules are those of defaults.toml, under the same names."""

from dataclasses import MISSING, fields

import pytest

from freshet.config.loading import load
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.fetch.client import FetchLimits
from freshet.crawler.frontier.politeness import PolitenessRules
from freshet.crawler.reduce.sitemaps import SitemapLimits
from freshet.crawler.robots.cache import RobotsRules
from freshet.crawler.run.pool import PoolRules


@pytest.mark.parametrize(
    ("group", "rules"),
    [("crawl", PoolRules), ("politeness", PolitenessRules), ("fetch", FetchLimits),
     ("robots", RobotsRules), ("sitemaps", SitemapLimits),
     ("traps", TrapLimits)],
)  # fmt: skip
def test_a_default_in_code_is_the_one_that_users_read_about(
    group: str, rules: type[PoolRules]
) -> None:
    settings, _ = load(None, {})
    given = getattr(settings, group).model_dump()
    in_code = {f.name: f.default for f in fields(rules) if f.default is not MISSING}
    shared = given.keys() & in_code.keys()
    assert shared
    assert {name: in_code[name] for name in shared} == {name: given[name] for name in shared}
