"""The request of a page of the dashboard."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshet.config.settings import Settings
from freshet.crawler.library import Library
from freshet.crawler.tally import UsageError


@dataclass(frozen=True, slots=True)
class Asked:
    """The store, the settings, and what the reader's URL says; ``now`` in Unix seconds.

    Forms hold ``csrf``; "": the reader cannot change anything.
    """

    library: Library
    settings: Settings
    path: str
    query: Mapping[str, str]
    now: float
    csrf: str = ""

    @property
    def page_url(self) -> str:
        """The URL of the page that is asked for; raises UsageError if none is."""
        if not self.query.get("url"):
            raise UsageError(f"url: name the page, as {self.path}?url=https://example.org/")
        return self.query["url"]

    def at(self, now: float) -> "Asked":
        """Return the same at another time."""
        return replace(self, now=now)
