"""The three Protocols of policies, one method each, and the loader that finds policies.

A policy is an entry point of the group ``freshet.policies``, found by name. The entry point is a
callable, usually a frozen dataclass; its keyword arguments are the policy's options.
``docs/guide/write-a-policy.md`` explains how to write one.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from freshet.scheduler import PolicyError
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.sources import SourceTable

# -- options --

Value: TypeAlias = bool | int | float | str


def given(make: Callable[..., Any], text: str) -> dict[str, Value]:
    """Return the options in ``text`` as keyword arguments of ``make``, typed as its defaults.

    Raises:
        ValueError: if an option is not an argument of ``make``, or its value is not accepted.

    >>> def make(share: float = 0.5, crawling: str = "poisson") -> None: ...
    >>> given(make, "share=0.25,crawling=periodic")
    {'share': 0.25, 'crawling': 'periodic'}
    """
    options: dict[str, Value] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        accepted = inspect.signature(make).parameters
        if key not in accepted or not equals:
            known = ", ".join(f"{option}=…" for option in accepted) or "none"
            raise ValueError(f"option {part!r} is not known; accepted are {known}")
        options[key] = _value(key, value, accepted[key].default)
    return options


def _value(key: str, text: str, default: object) -> Value:
    """Return the text as a value of the default's type."""
    if isinstance(default, bool):
        if text not in {"true", "false"}:
            raise ValueError(f"{key} is {text!r}; accepted are true and false")
        return text == "true"
    if not isinstance(default, int | float):
        return text
    try:
        return type(default)(text)
    except ValueError as error:
        raise ValueError(f"{key} is {text!r}; accepted is a number") from error


GROUP = "freshet.policies"
#: Policies that are known from the literature and not offered, with the reason.
_REFUSED = {
    "search_priority": "the priority of Pandey's thesis (quality gained per day times age) starves "
    "pages with first visits that gained no quality: on recorded sites it loses more quality than "
    "uniform visits do; use search_quality instead"
}

#: How a crawl rate is carried out: at the times of a Poisson process, or evenly spaced.
Crawling: TypeAlias = Literal["poisson", "periodic"]


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    """The crawl rates of n sources.

    Attributes:
        crawl_rate: (n,), crawls per day; pΔ for a source crawled on its signals.
        crawl_probability: (n,), p, the share of notified changes that are crawled; 1 where it
            does not apply.
        on_signals: (n,), True where notified changes trigger the crawls instead of the clock.
        bandwidth: R, the available crawls per day.
        left_over: the part of R that no source can use (caps or ΣΔ bind everywhere, or the next
            whole step of every source that is crawled at each k-th change exceeds it).
        price: λ, the cost saved by one more crawl per day; 0 if a further crawl saves nothing, None
            for a policy without prices.
        host_price: (H,), the multiplier of each host: λ where its capacity does not bind, more
            where it does; None for a policy without prices.
        crawling: how the rates are to be carried out (for a source on signals, ``periodic``
            means every k-th notified change, k = ⌈1/p⌉).
    """

    crawl_rate: Floats
    crawl_probability: Floats
    on_signals: Bools
    bandwidth: float
    left_over: float = 0.0
    price: float | None = None
    host_price: Floats | None = None
    crawling: Crawling = "poisson"

    def __len__(self) -> int:
        return len(self.crawl_rate)

    @property
    def not_crawled(self) -> Bools:
        """Return True for the sources that this plan never crawls; (n,)."""
        never: Bools = self.crawl_rate == 0
        return never


@runtime_checkable
class RatePolicy(Protocol):
    """A policy that divides a budget into crawl rates, again whenever rates or budget change."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the plan that spends ``budget`` crawls per day on these sources.

        ``host_capacity`` is respected; the unspent budget is ``left_over``.

        Raises:
            ValueError: if the budget is not a finite number above 0, a column has a wrong row, or
                numbers are out of the range of the computation.
        """


@runtime_checkable
class IndexPolicy(Protocol):
    """A policy that values each source now; the most valuable one is crawled next."""

    def index(self, table: SourceTable, now: float) -> Floats:
        """Return the value (n,) of crawling each source at day ``now``, at least 0.

        Contract: between two events of a source (crawl, signal, new change rate) its index does not
        decrease with time, and it does not depend on other rows.
        """


@dataclass(frozen=True, slots=True)
class Revisit:
    """The result of crawling a known source, as an :class:`IntervalPolicy` sees it.

    ``at`` is its day; ``changed`` compares with the last crawl; ``modified_at`` is the day of the
    last change according to the server, or None.
    """

    at: float
    changed: bool
    modified_at: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """The state that an :class:`IntervalPolicy` keeps of a source; all in days.

    ``interval`` is the current estimate, ``due_at`` the day of the next crawl.
    """

    interval: float
    due_at: float


@runtime_checkable
class IntervalPolicy(Protocol):
    """A policy that sets each source's next interval from its last one alone."""

    def next_interval(self, previous: Pace | None, observation: Revisit) -> Pace:
        """Return the pace after a visit; ``previous`` is None at the first one."""


Policy: TypeAlias = RatePolicy | IndexPolicy | IntervalPolicy


def names() -> list[str]:
    """Return the names of all installed policies, sorted."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(specification: str) -> Policy:
    """Return a policy by ``NAME`` or ``NAME:OPTION=VALUE,…``.

    Raises:
        PolicyError: if the name, an option or a value is not accepted, or if the entry point cannot
            be loaded or is not a policy.
    """
    name, _, text = specification.partition(":")
    make = _imported(_entry(name))
    try:
        policy = make(**given(make, text))
    except Exception as error:
        # Third-party code, as below.
        raise PolicyError(f"policy {name}: {str(error) or type(error).__name__}") from error
    if not isinstance(policy, RatePolicy | IndexPolicy | IntervalPolicy):
        raise PolicyError(f"policy {name}: has none of the methods rates, index, next_interval")
    return policy


def _entry(name: str) -> EntryPoint:
    if name in _REFUSED:
        raise PolicyError(f"policy {name}: {_REFUSED[name]}")
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise PolicyError(f"policy: {name!r} is not known; accepted are {', '.join(names())}")
    distributions = sorted({entry.dist.name for entry in found if entry.dist is not None})
    if len(distributions) > 1:
        raise PolicyError(
            f"policy {name}: is declared by {' and '.join(distributions)}; uninstall one"
        )
    return next(iter(found))


def _imported(entry: EntryPoint) -> Callable[..., Any]:
    try:
        made: Callable[..., Any] = entry.load()
    except Exception as error:
        # Third-party code: any error is reported under the policy's name.
        raise PolicyError(
            f"policy {entry.name}: {entry.value} cannot be loaded: {error}; name another"
        ) from error
    return made
