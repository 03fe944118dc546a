"""Contract tests for policies: one line in the test of a policy's author.

    verify(MyPolicy()) verify(MyPolicy(), optimal_for="harmonic")

runs the policy on small tables of sources (none, one, a dozen, of both classes, with capacities,
with zeros, of magnitudes from 1e-12 to 1e12) and raises one error that lists every broken law with
a counter-example. ``python -m freshet.scheduler.conformance NAME`` prints all laws.

The laws are functions with sentences as names: :mod:`.laws`, and :mod:`.optimality` for policies
that claim to minimise a cost. ``seed`` determines all tables: a run is reproducible.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from freshet.scheduler.conformance import laws, optimality
from freshet.scheduler.conformance.samples import watched
from freshet.scheduler.policy import IndexPolicy, IntervalPolicy, Policy, RatePolicy

#: A cost that a policy can claim to minimise.
Objective: TypeAlias = Literal["harmonic", "binary"]


@dataclass(frozen=True, slots=True)
class _LawVerdict:
    """A law, as a sentence, and a counter-example if it is broken."""

    law: str
    counter_example: str | None

    def __str__(self) -> str:
        return self.law if self.counter_example is None else f"{self.law}: {self.counter_example}"


class ConformanceError(AssertionError):
    """The laws that a policy breaks: ``broken`` verdicts, one line of the message each."""

    def __init__(self, policy: object, broken: list[_LawVerdict]) -> None:
        self.broken = broken
        lines = [f"{type(policy).__name__} breaks {len(broken)} of the laws:", *map(str, broken)]
        super().__init__("\n  ".join(lines))


def verify(policy: Policy, *, optimal_for: Objective | None = None, seed: int = 0) -> None:
    """Check a policy against all laws of its kind.

    ``optimal_for`` names the cost that a rate policy claims to minimise over crawling at random
    times (and, for ``"harmonic"``, on random signals; ``"binary"`` is checked only on sources with
    incomplete observations).

    Raises:
        ConformanceError: if laws are broken; it lists all broken laws.
        TypeError: as :func:`verdicts`.
    """
    found = verdicts(policy, optimal_for=optimal_for, seed=seed)
    if broken := [each for each in found if each.counter_example is not None]:
        raise ConformanceError(policy, broken)


def verdicts(
    policy: Policy, *, optimal_for: Objective | None = None, seed: int = 0
) -> list[_LawVerdict]:
    """Return every law for the policy's kind, kept or broken.

    Raises:
        TypeError: if it is not a policy, or ``optimal_for`` is given for a policy without rates.
    """
    if not isinstance(policy, RatePolicy | IndexPolicy | IntervalPolicy):
        raise TypeError(f"{policy!r} has none of the methods rates, index, next_interval")
    if optimal_for is not None and not isinstance(policy, RatePolicy):
        raise TypeError("optimal_for: is accepted only for policies with the method rates")
    return [
        _LawVerdict(law.__name__.replace("_", " "), _counter_example(law, policy, samples))
        for law, samples in _laws(policy, optimal_for, seed)
    ]


def _laws(
    policy: Policy, optimal_for: Objective | None, seed: int
) -> Iterator[tuple[Callable[..., str | None], Callable[[], Iterable[tuple[Any, ...]]]]]:
    """Yield each law with a function that returns its samples."""
    if isinstance(policy, RatePolicy):
        for rate_law, samples in laws.RATE_LAWS.items():
            yield rate_law, partial(samples, seed)
        if optimal_for is not None:
            for optimal_law in optimality.LAWS:
                yield optimal_law, partial(optimality.convex, optimal_for, seed)
    if isinstance(policy, IndexPolicy):
        for index_law in laws.INDEX_LAWS:
            yield index_law, partial(watched, seed)
    if isinstance(policy, IntervalPolicy):
        for interval_law in laws.INTERVAL_LAWS:
            yield interval_law, partial(laws.histories, policy, seed)


def _counter_example(
    law: Callable[..., str | None], policy: Policy, samples: Callable[[], Iterable[tuple[Any, ...]]]
) -> str | None:
    """Return the first counter-example, with the name of its sample; an error counts as one."""
    with warnings.catch_warnings():
        # An overflow or a division by zero that went unnoticed would give an accidental result.
        warnings.simplefilter("error", RuntimeWarning)
        try:
            for name, *sample in samples():
                if wrong := law(policy, *sample):
                    return f"{name}: {wrong}"
        except Exception as error:  # noqa: BLE001 - an error of a third-party policy is a result
            first_line = str(error).partition("\n")[0]
            return f"{type(error).__name__}: {first_line}"
    return None
