"""What the Whittle index is compared with (both papers, section "Numerical examples")."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources
from freshet.scheduler.ephemeral.periods import Seen


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """All in turn: whoever waited longest."""

    def priority(self, seen: Seen) -> Floats:
        """(n,), periods since the crawl."""
        return seen.since_crawl


@dataclass(frozen=True, slots=True)
class GreedyExpected:
    """The largest utility expected since the crawl, (Λξ̄/μ)(1 − e^{−μ·age}), per cost."""

    sources: EphemeralSources

    def priority(self, seen: Seen) -> Floats:
        """(n,), utility per unit of cost."""
        return seen.expected / self.sources.cost


@dataclass(frozen=True, slots=True)
class GreedyObserved:
    """The largest utility that is there, per cost; that expected where it is not observed."""

    sources: EphemeralSources

    def priority(self, seen: Seen) -> Floats:
        """(n,), utility per unit of cost."""
        return seen.state / self.sources.cost


@dataclass(frozen=True, slots=True)
class BestSources:
    """Always the same: those that earn most if they are crawled each period."""

    sources: EphemeralSources

    def priority(self, seen: Seen) -> Floats:
        """(n,), u per unit of cost."""
        return self.sources.fresh / self.sources.cost
