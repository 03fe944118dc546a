"""Webs by name."""

import pytest

from freshet.crawler.cli.simulate import is_ephemeral, load

DAY_S = 86_400.0


def test_a_web_has_the_size_and_changes_for_the_days_asked_for() -> None:
    web = load("synthetic:hosts=3,pages=20", seed=5, days=12.0)
    assert list(web.sites) == ["news", "docs", "shop"]
    assert web.seed == 5
    assert web.end_at - web.start_at == 12 * DAY_S
    assert load("showcase", seed=5, days=90.0).end_at - web.start_at == 90 * DAY_S


def test_a_newsroom_alone_is_a_web_of_what_counts_for_hours() -> None:
    assert list(load("newsroom:items=12,docs=9", seed=5, days=2.0).sites)[-1] == "docs"
    assert is_ephemeral("newsroom:items=12")
    assert not is_ephemeral("showcase")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("real", "web: 'real' is not known; accepted are endless, newsroom, showcase, synthetic"),
        ("newsroom:items=0", "web newsroom: items is 0; accepted is a number above 0"),
        ("newsroom:docs=0", "web newsroom: a web has at least one host"),
        ("synthetic:host=3", "web synthetic: option 'host=3' is not known"),
        ("synthetic:hosts=0", "web synthetic: a web has at least one host"),
        ("showcase:traps=1", "web showcase: traps is '1'; accepted are true and false"),
    ],
)
def test_what_is_not_accepted_is_told_by_name(wrong: str, told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("(", r"\(")):
        load(wrong, seed=1, days=10.0)
