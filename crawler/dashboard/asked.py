"""The request of a page of the dashboard."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshet.config.settings import Settings
from freshet.crawler.library import Library


@dataclass(frozen=True, slots=True)
class Asked:
    """The store, the settings, and what the reader's URL says; ``now`` in Unix seconds."""

    library: Library
    settings: Settings
    path: str
    query: Mapping[str, str]
    now: float

    def at(self, now: float) -> "Asked":
        """Return the same at another time."""
        return replace(self, now=now)
