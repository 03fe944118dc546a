"""Rules for pages by the pattern of their URL."""

import re
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.config import ConfigError
from freshet.config.loading import load
from freshet.config.settings import PageRule
from freshet.crawler.importance import pattern, terms

URLS = ["https://a.example/", "https://a.example/tag/x", "http://b.example/shop/tag/1?page=2"]


AREAS = np.zeros(3, np.intp)


def rule(match: str, **said: object) -> PageRule:
    return PageRule.model_validate({"match": match, **said})


def test_a_path_holds_on_every_host_and_a_star_is_anything() -> None:
    found = terms(
        URLS, AREAS, np.ones(3), [rule("/tag/*", never=True), rule("*page=*", least_days=3)]
    )
    assert found.never.tolist() == [False, True, False]
    assert found.least_days.tolist() == [0.0, 0.0, 3.0]
    assert found.most_days.tolist() == [inf] * 3


def test_the_first_rule_that_says_something_counts_for_each_term() -> None:
    rules = [
        rule("https://a.example/*", importance=5),
        rule("*", importance=2, most_days=9, never=False),
        rule("*tag*", importance=7, most_days=1, never=True),
    ]
    found = terms(URLS, AREAS, np.ones(3), rules)
    assert found.importance.tolist() == [5.0, 5.0, 2.0]
    assert found.most_days.tolist() == [9.0] * 3
    assert not found.never.any()


def test_a_rule_declares_ephemeral_sources_or_says_that_there_is_none() -> None:
    rules = [
        rule("/tag/*", ephemeral=True),
        rule("http://b.example/*", half_life_hours=12),
        rule("*", ephemeral=False),
    ]
    assert terms(URLS, AREAS, np.ones(3), rules).half_life_days.tolist() == [0.0, inf, 0.5]
    # What the site list says of how fast things fade holds where a rule says no other time.
    listed = np.array([np.nan, 0.25, 0.25])
    assert terms(URLS, AREAS, np.ones(3), rules[:2], listed).half_life_days.tolist()[1:] == [
        0.25,
        0.5,
    ]
    assert np.isnan(terms(URLS, AREAS, np.ones(3), [], None).half_life_days).all()


def test_marks_of_patterns_are_no_patterns() -> None:
    assert (
        terms(["https://a.example/xhtml"], AREAS[:1], np.ones(1), [rule("/x.*", never=True)]).never[
            0
        ]
        == 0
    )


@pytest.mark.parametrize(
    "wrong",
    [[{"match": ""}], [{"match": "*", "often": True}],
     [{"match": "*", "least_days": 3, "most_days": 2}], [{"match": "*", "importance": -1}],
     [{"match": "*", "half_life_hours": 0}],
     [{"match": "*", "ephemeral": False, "half_life_hours": 2}]],
)  # fmt: skip
def test_wrong_rules_are_told_in_one_line(wrong: list[dict[str, object]]) -> None:
    with pytest.raises(ConfigError, match=r"daemon\.rules") as caught:
        load(None, {"daemon.rules": wrong})
    assert "\n" not in str(caught.value)


@given(st.text("ab*/", max_size=8), st.text("ab/", max_size=10), st.booleans())
def test_stars_stand_for_anything_however_many_they_are(match: str, path: str, on: bool) -> None:
    url = f"h://{path}" if on else path
    plain = ".*".join(map(re.escape, match.split("*")))
    plain = f"[a-z]+://[^/]+{plain}" if match.startswith("/") else plain
    assert bool(pattern(match).fullmatch(url)) == bool(re.fullmatch(plain, url))
    # This would take longer than anybody waits if all ways were tried.
    assert pattern("*a" * 30 + "b").fullmatch("a" * 2_000) is None
