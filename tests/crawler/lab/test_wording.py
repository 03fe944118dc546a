"""The answer claims what the ranges show, and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.crawler.lab import report
from freshet.crawler.lab.report import Proof
from freshet.scheduler.evaluate.counterfactual import Terms
from freshet.scheduler.evaluate.verdicts import Bounded, Verdict, compare
from tests.scheduler.evaluate.archives import one_page


@pytest.fixture(scope="module")
def some() -> Verdict:
    captures = one_page({float(day): day // 3 for day in range(20)})
    return compare(captures, ("uniform",), [Terms(1.0, 2.0, 19.0)]).verdicts[0]


def verdict(some: Verdict, name: str, *harmonic: float, budget: float = 5.0) -> Verdict:
    return replace(some, policy=name, budget=budget, harmonic=Bounded(*harmonic))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((0.1, 0.2, 0.9), Proof.EQUAL),
        ((0.15, 0.3, 0.9), Proof.OVERLAP),
        ((0.25, 0.3, 0.9), Proof.SHOWN),
        ((0.95, 1.0, 1.2), Proof.FEARED),
    ],
)
def test_proof_is_what_the_ranges_give(
    some: Verdict, other: tuple[float, float, float], expected: Proof
) -> None:
    pair = [verdict(some, "late", *other), verdict(some, "early", 0.1, 0.2, 0.9)]
    assert report.proof(pair) is expected
    assert expected.value in report.sentence(pair) or expected is Proof.EQUAL


def test_sentences_name_the_freshest_first(some: Verdict) -> None:
    three = [
        verdict(some, "c", 0.3, 0.4, 2.0),
        verdict(some, "a", 0.1, 0.2, 2.0),
        verdict(some, "b", 0.25, 0.3, 2.0),
    ]
    said = report.sentence(three)
    assert said.startswith("With 5 fetches a day a would have kept the pages fresher than b and c")
    assert "0.1 – 0.2 against 0.25 – 0.3 of b" in said
    both = report.summary([three, [replace(each, budget=9.0) for each in three]])
    assert both == (
        "a comes out freshest with both budgets; the ranges of costs do not overlap with both "
        "budgets."
    )
    assert "nothing to compare" in report.summary([three[:1]])
    assert np.isfinite(three[0].binary.early)
    more = report.summary([three[:1], [verdict(some, "c", 0.1, 0.2, 2.0, budget=9.0)]])
    assert "0.3 – 0.4 with 5 fetches a day, and of 0.1 – 0.2 with 9" in more


def test_names_stand_in_a_sentence() -> None:
    assert report.named([]) == ""
    assert report.named(["a"]) == "a"
    assert report.named(["a", "b", "c"]) == "a, b and c"
