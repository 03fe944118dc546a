"""The answer in words: who came out freshest, and does the archive prove it? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Final

from freshet.crawler.commands.figures import amount, counted, percent
from freshet.scheduler.evaluate.verdicts import Bounded, Verdict

#: Policies that a sentence names one by one.
_NAMED: Final = 3


class Proof(Enum):
    """How sure it is that the freshest policy is the fresher one, by the ranges of its cost."""

    ALONE = "there is nothing to compare it with"
    EQUAL = "another one cost the same"
    OVERLAP = "the ranges overlap: the archive does not prove it"
    SHOWN = "the ranges do not overlap, as far as the archive shows what changed"
    FEARED = (
        "the ranges do not overlap, even if pages were others, too, whenever the archive did not "
        "look"
    )


def ranked(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts on one budget, the freshest first: by the most that the archive proves."""
    return sorted(verdicts, key=lambda each: (each.harmonic.early, each.harmonic.optimistic))


def proof(verdicts: Sequence[Verdict]) -> Proof:
    """What the ranges of harmonic costs with one budget say of the freshest of at least one."""
    if len(verdicts) < 2:
        return Proof.ALONE
    best, *others = (each.harmonic for each in ranked(verdicts))
    if (best.optimistic, best.early) == (others[0].optimistic, others[0].early):
        return Proof.EQUAL
    least = min(each.optimistic for each in others)
    if best.pessimistic < least:
        return Proof.FEARED
    return Proof.SHOWN if best.early < least else Proof.OVERLAP


def sentence(verdicts: Sequence[Verdict]) -> str:
    """The answer for one budget."""
    best, *others = ranked(verdicts)
    budget = f"With {amount(best.budget)} fetches a day"
    cost = f"a harmonic cost of {_range(best.harmonic)}"
    stale = f"{_shares(best.binary)} of importance stale"
    how = proof(verdicts)
    if how is Proof.ALONE:
        return f"{budget} {best.policy} would have had {cost}, {stale}; {how.value}."
    if how is Proof.EQUAL:
        same = [each.policy for each in others if _same(each, best)]
        return f"{budget} {named([best.policy, *same])} come out alike: {cost}, {stale}."
    names = named([each.policy for each in others])
    if len(others) > _NAMED:
        names = f"the {len(others)} others"
    verb = "comes out fresher" if how is Proof.OVERLAP else "would have kept the pages fresher"
    against = f"{_range(others[0].harmonic)} of {others[0].policy}"
    return f"{budget} {best.policy} {verb} than {names}: {cost} against {against}; {how.value}."


def summary(budgets: Sequence[Sequence[Verdict]]) -> str:
    """The answer for all budgets; that for one budget is its sentence."""
    if len(budgets) == 1:
        return sentence(budgets[0])
    alone = all(proof(each) is Proof.ALONE for each in budgets)
    if alone:
        ends = ranked([verdicts[0] for verdicts in budgets])
        low, high = ends[0], ends[-1]
        return (
            f"{low.policy} would have had a harmonic cost of {_range(high.harmonic)} with "
            f"{amount(high.budget)} fetches a day, and of {_range(low.harmonic)} with "
            f"{amount(low.budget)}."
        )
    wins = Counter(ranked(each)[0].policy for each in budgets)
    first = ", ".join(
        f"{name} comes out freshest with {_times(won, len(budgets))}"
        for name, won in wins.most_common()
    )
    proved = sum(proof(each) in {Proof.SHOWN, Proof.FEARED} for each in budgets)
    if not proved:
        return f"{first}; the ranges of costs overlap with each: the archive does not prove it."
    return f"{first}; the ranges of costs do not overlap with {_times(proved, len(budgets))}."


def named(names: Sequence[str]) -> str:
    """A list in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _times(count: int, of: int) -> str:
    if count == of:
        return f"all {of} budgets" if of > 2 else "both budgets"
    return f"{count} of {counted(of, 'budget')}"


def _same(one: Verdict, other: Verdict) -> bool:
    mine, its = one.harmonic, other.harmonic
    return (mine.optimistic, mine.early) == (its.optimistic, its.early)


def _range(cost: Bounded) -> str:
    return f"{amount(cost.optimistic)} – {amount(cost.early)}"


def _shares(cost: Bounded) -> str:
    return f"{percent(cost.optimistic)} – {percent(cost.early)}"
