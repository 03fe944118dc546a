from collections import Counter

from freshet.crawler.synthetic_web.content import DAY_S, EditKind
from freshet.crawler.synthetic_web.sites import RATES_PER_DAY, wiki
from freshet.crawler.synthetic_web.truth import Truth
from freshet.crawler.synthetic_web.web import START_AT, WebSpec

SITE = wiki(WebSpec().plot("wiki"))
TRUTH = Truth({"wiki": SITE})
DAYS = 60


def test_pages_are_edited_at_the_rates_that_they_were_given() -> None:
    edits = TRUTH.edits_between(START_AT, START_AT + DAYS * DAY_S)
    counts = Counter(edit.place.target for edit in edits if edit.kind is EditKind.MAIN)
    for n in range(1, 12):
        expected = DAYS * RATES_PER_DAY[n % len(RATES_PER_DAY)]
        # Five standard deviations of a Poisson count.
        assert abs(counts[f"/wiki/Topic_{n}"] - expected) <= 5 * expected**0.5


def test_some_pages_change_daily_and_some_never() -> None:
    alive = TRUTH.alive(START_AT)
    day = START_AT + DAY_S, START_AT + 2 * DAY_S
    changed = {place for place in alive if TRUTH.changed_significantly(place, *day)}
    ever = {e.place for e in TRUTH.edits_between(0.0, 1e12) if e.kind is EditKind.MAIN}
    assert len(changed) >= 4
    assert len(alive - ever) >= 10
