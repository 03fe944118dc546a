import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import numpy as np
import pytest

from freshet.scheduler import PolicyError, policy
from freshet.scheduler.policy import CrawlPlan, IndexPolicy, IntervalPolicy, RatePolicy
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class Even:
    """Rates; its options are of every type that an option can have."""

    share: float = 0.5
    floor: int = 1
    heed: bool = False
    crawling: str = "poisson"

    def __post_init__(self) -> None:
        if self.share > 1:
            raise ValueError(f"share: is {self.share}; accepted is at most 1")

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        n = len(table)
        return CrawlPlan(np.full(n, budget / n), np.ones(n), np.zeros(n, np.bool_), budget)


class Nothing:
    pass


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry points of an imagined distribution, and the module that they name."""
    module = ModuleType("their_policies")
    vars(module).update(Even=Even, Nothing=Nothing, number=7)
    monkeypatch.setitem(sys.modules, "their_policies", module)
    declared = {
        "even": "their_policies:Even", "nothing": "their_policies:Nothing",
        "absent": "no_such_module:Even", "number": "their_policies:number",
    }  # fmt: skip
    entries = EntryPoints(EntryPoint(*each, policy.GROUP) for each in declared.items())
    monkeypatch.setattr(policy, "entry_points", entries.select)


def test_a_policy_is_loaded_by_its_name() -> None:
    assert policy.load("even") == Even()
    assert policy.names() == ["absent", "even", "nothing", "number"]


def test_options_have_the_type_of_their_default() -> None:
    loaded = policy.load("even:share=0.25,floor=3,heed=true,crawling=periodic")
    assert loaded == Even(0.25, 3, True, "periodic")


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("evn", "policy: 'evn' is not known; accepted are absent, even, nothing, number"),
        ("even:shar=1", "policy even: option 'shar=1' is not known; accepted are share=…, floor=…"),
        ("even:share", "policy even: option 'share' is not known"),
        ("even:share=x", "policy even: share is 'x'; accepted is a number"),
        ("even:floor=1.5", "policy even: floor is '1.5'; accepted is a number"),
        ("even:heed=1", "policy even: heed is '1'; accepted are true and false"),
        ("even:share=2", "policy even: share: is 2.0; accepted is at most 1"),
        ("nothing", "policy nothing: has none of the methods rates, index, next_interval"),
        ("nothing:a=1", "policy nothing: option 'a=1' is not known; accepted are none"),
        ("absent", "policy absent: no_such_module:Even cannot be loaded: No module named"),
        ("number", "policy number: 'int' object is not callable"),
    ],
)
def test_what_is_not_accepted_is_told_in_one_sentence(specification: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy.load(specification)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_kind_of_a_policy_is_its_method() -> None:
    assert isinstance(Even(), RatePolicy)
    assert not isinstance(Even(), IndexPolicy | IntervalPolicy)


def test_a_plan_says_whom_it_never_crawls() -> None:
    plan = CrawlPlan(np.array([0.0, 1.0]), np.ones(2), np.zeros(2, np.bool_), 1.0)
    assert plan.not_crawled.tolist() == [True, False]
    assert len(plan) == 2
