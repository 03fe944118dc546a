"""The request of a page of the dashboard."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

from aiohttp import web

from freshet.config.settings import Settings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard.settings_file import SettingsFile
from freshet.crawler.read.library import Library

T = TypeVar("T")


def value_of(
    given: Mapping[str, str], name: str, read: Callable[[str], T], accepted: str, default: T
) -> T:
    """Return a value as ``read`` reads it; raise UsageError where that raises ValueError."""
    said = given.get(name, "").strip()
    try:
        return read(said) if said else default
    except ValueError as error:
        raise UsageError(f"{name}={said[:80]}: accepted are {accepted}") from error


@dataclass(frozen=True, slots=True)
class DashboardRequest:
    """The store, the settings, and the query of the reader's URL; ``now`` in Unix seconds.

    Forms hold ``csrf``; "": the reader cannot change anything.
    """

    library: Library
    file: SettingsFile
    path: str
    query: Mapping[str, str]
    now: float
    csrf: str = ""

    @property
    def settings(self) -> Settings:
        """The settings as they were read last."""
        return self.file.settings

    @property
    def page_url(self) -> str:
        """The URL of the requested page; raises UsageError without one."""
        if not self.query.get("url"):
            raise UsageError(f"url: name the page, as {self.path}?url=https://example.org/")
        return self.query["url"]


#: Entry points of added pages: each is a function that makes one of the store's path and settings.
PAGES: Final = "freshet.pages"


class ExtensionPage(Protocol):
    """A page of the dashboard. The folder ``templates`` beside its module has its template."""

    path: str
    label: str
    template: str
    #: Its routes, such as those for forms.
    routes: Sequence[web.AbstractRouteDef]

    async def shown(self, asked: DashboardRequest) -> Mapping[str, object]:
        """Return the values for the template."""


@runtime_checkable
class ChangingPage(Protocol):
    """A page of the dashboard with forms that are posted to its path."""

    async def change(self, asked: DashboardRequest, form: Mapping[str, str]) -> str:
        """Perform the action of a form; return the URL of the next page."""
