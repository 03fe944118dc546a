"""The benchmark of new pages enters them by its rules, on sites of one fate."""

import numpy as np
import pytest

from scripts.benchmarks import new_pages
from scripts.benchmarks.new_pages import BY, GROWN, RULES, Site, run, shares


def site(days: int = 40) -> Site:
    made = Site(np.random.default_rng(3), np.random.default_rng(4), np.full(6, 0.2), 50)
    made.bear(120, -1e3)
    for day in range(days):
        made.live(float(day))
    made.bear(5, 40.0)
    return made


@pytest.mark.parametrize("by", BY)
def test_a_page_enters_with_the_least_of_its_site_or_the_median_of_its_section(by: str) -> None:
    made = site()
    pages, new = made.pages, made.pages["born"] >= 40
    least, median, month = (shares(made, by, rule, 40.0) for rule in RULES)
    assert least[~new].mean() == pytest.approx(1.0)
    assert least[new] == pytest.approx(least[~new].min())
    for row in np.flatnonzero(new).tolist():
        section = pages["section"] == pages["section"][row]
        assert median[row] == pytest.approx(np.median(median[section & ~new]))
    young = pages["born"] > 10
    ratio = month / median
    # What the young ones get, the others lose.
    assert ratio[~young] == pytest.approx(ratio[~young].max())
    assert (ratio[young & ~new] >= ratio.min() - 1e-12).all()


def test_births_and_deaths_are_those_of_the_seed_whatever_the_rule() -> None:
    found = [run("depth", rule, 1, GROWN + 20) for rule in RULES]
    assert len({each["pages"] for each in found}) == 1
    assert found[0]["pages"] > 0
    assert found[1]["first_day"] > found[0]["first_day"]
    assert found[0] == run("depth", "least", 1, GROWN + 20)


def test_a_table_has_a_row_for_each_importance_and_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = {"pages": 1.0, "days": 2.0, "stale": 0.5, "stale_grown": 0.4}
    monkeypatch.setattr(new_pages, "run", lambda *_: dict(fixed))
    rows = new_pages.table([0, 1], 1, 50)
    assert [(row["importance"], row["rule"]) for row in rows] == [(b, r) for b in BY for r in RULES]
    assert rows[0]["days"] == [2.0, 0.0]
    assert rows[0]["stale_beside_least"] == [1.0, 0.0]
