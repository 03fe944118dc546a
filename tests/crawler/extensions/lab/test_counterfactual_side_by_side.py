"""Policies in processes of their own: the same verdicts, and what goes wrong there is told."""

import os
import signal
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.counterfactual import judging, side_by_side
from freshet.scheduler import PolicyError
from freshet.scheduler.evaluate.captures import Captures
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.counterfactual import ReplayTerms
from freshet.scheduler.evaluate.serving import silent
from freshet.scheduler.evaluate.verdicts import JudgedArchive, compare, in_turn
from tests.scheduler.evaluate.archives import sampled

DAYS = 40.0
NAMES = ("uniform", "greedy_index", "nutch_adaptive", "lambda_crawl")
TERMS = (ReplayTerms(3.0, 10.0, 38.0), ReplayTerms(9.0, 10.0, 38.0))


@pytest.fixture(scope="module")
def captures() -> Captures:
    """Of thirty pages, visited every other day; they change more and less often."""
    rng = np.random.default_rng(8)
    number = rng.poisson(DAYS / np.arange(1, 31))
    at = np.concatenate([np.sort(rng.uniform(0.1, DAYS, each)) for each in number])
    return sampled(ChangeTimes(np.append(0, np.cumsum(number)), at), np.arange(0.0, DAYS, 2.0))


def same(one: object, other: object) -> bool:
    """Whether all fields are equal to the last bit; NaN is equal to NaN."""
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple):
        assert isinstance(other, tuple)
        return all(same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, (float, np.ndarray)):
        return np.array_equal(one, other, equal_nan=True)  # type: ignore[arg-type]
    return one == other


@pytest.mark.long
def test_two_processes_give_the_verdicts_of_one(captures: Captures) -> None:
    heard: dict[str, list[float]] = {}

    def tell(name: str, share: float) -> None:
        heard.setdefault(name, []).append(share)

    def by_two(bench, trials, progress):  # type: ignore[no-untyped-def]
        return side_by_side(2, bench, trials, progress)

    alone = compare(captures, NAMES, TERMS)
    found = compare(captures, NAMES, TERMS, tell, by_two)
    assert [(v.policy, v.budget) for v in found.verdicts] == [
        (name, terms.budget) for terms in TERMS for name in NAMES
    ]
    assert same(found, alone)
    assert len(heard) == len(NAMES) * len(TERMS)
    assert all(shares == sorted(shares) and shares[-1] == 1.0 for shares in heard.values())


def test_a_policy_that_fails_there_fails_here(captures: Captures) -> None:
    with pytest.raises(PolicyError, match="'nothing' is not known"):
        side_by_side(
            2, JudgedArchive(captures), [("uniform", TERMS[0]), ("nothing", TERMS[0])], silent
        )


def test_a_process_that_is_killed_is_said_so(captures: Captures) -> None:

    def kill(name: str, share: float) -> None:
        for child in active_children():
            os.kill(child, signal.SIGKILL)

    with pytest.raises(CrawlError, match="was killed, perhaps for want of memory"):
        side_by_side(1, JudgedArchive(captures), [("uniform", TERMS[0])] * 50, kill)


def active_children() -> list[int]:
    import multiprocessing

    return [child.pid for child in multiprocessing.active_children() if child.pid is not None]


def test_what_is_soon_done_is_done_in_turn() -> None:
    assert judging(1_000.0) is in_turn
