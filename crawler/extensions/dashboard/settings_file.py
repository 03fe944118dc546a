"""The settings of a server: their values, their origins, and changes of the settings file."""

import asyncio
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from freshet.config import ConfigError
from freshet.config.loading import Origins
from freshet.config.settings import Settings
from freshet.config.writing import Keys, Tables
from freshet.crawler.cli.config import write_settings
from freshet.crawler.errors import UsageError
from freshet.crawler.read.api import StoreApi
from freshet.crawler.run.orders import budget_of
from freshet.scheduler import PolicyError
from freshet.scheduler.queue.rankers import ranker_of
from freshet.storage.database import SHARDS_FILE, as_json, owner_of
from freshet.storage.errors import trouble
from freshet.storage.stores import is_folder
from freshet.storage.tables.runs import SiteSetting

#: The settings with a form, and the accepted input.
FORMS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "daemon.budget": (
            "Budget",
            "requests, such as 5000/day or 100/hour; empty: one a page and day",
        ),
        "politeness.delay_s": ("Delay", "seconds between two requests to a host"),
        "crawl.contact": ("Contact", "a mail address or a URL, which sites are told"),
        "daemon.policy": ("Policy", "which page is visited next, such as site_clock"),
    }
)
#: Keys of ``[[sites]]`` that the view of a page sets by a button.
BUTTONS: Final = ("importance", "never", "ignore")
_NUMBERS: Final = frozenset({"politeness.delay_s"})
_DAEMON: Final = "daemon"


class SettingsFile:
    """The settings that hold now, and the file in which a browser changes them.

    Attributes:
        settings: as they were read last.
        trouble: the reason why the file cannot be read now, or "".
        sites: the values of ``[[sites]]`` of the file for keys with a button; ``at`` is 0.
    """

    def __init__(self, api: StoreApi, settings: Settings) -> None:
        """Begin with these settings; ``api`` has their source and obeys later ones."""
        self._api, self._source = api, api.source
        self._origins: Origins = {}
        self._state: object = None
        self._turn = asyncio.Lock()
        self.settings, self.trouble, self.sites = settings, "", list(_of_buttons(settings))

    @property
    def path(self) -> Path | None:
        """The file, which need not exist; None if settings cannot be changed here."""
        return None if self._source is None else self._source.file.absolute()

    def read(self) -> Settings:
        """Return the settings, which are read again where their file has changed."""
        if self._source is None or (state := _state(self._source.file)) == self._state:
            return self.settings
        self._state = state
        try:
            settings, self._origins = self._source.read()
            self._api.obey(settings)
        except (ConfigError, UsageError) as error:
            self.trouble = str(error)
        else:
            self.settings, self.trouble, self.sites = settings, "", list(_of_buttons(settings))
        return self.settings

    def values(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, value and origin of each setting; secrets are masked."""
        for group, table in self.settings.model_dump(mode="json", exclude_none=True).items():
            of_group = table.items() if isinstance(table, dict) else [("", table)]
            for key, value in of_group:
                name = f"{group}.{key}".removesuffix(".")
                shown = value if isinstance(value, str) else as_json(value)
                yield name, shown, self._origins.get(name, "")

    def form(self, name: str) -> tuple[str, str]:
        """Return the value of a setting with a form, and its origin."""
        group, _, key = name.partition(".")
        value = getattr(getattr(self.settings, group), key)
        shown = f"{value:g}" if name in _NUMBERS else str(value)
        return shown, self._origins.get(name, "")

    async def put(self, name: str, typed: str) -> None:
        """Set a setting with a form, or remove it for an empty input.

        Raises:
            UsageError: it is not valid, or cannot be set in the file.
        """
        if name not in FORMS:
            raise UsageError(
                f"name: {name[:80]} cannot be set here; accepted are {', '.join(FORMS)}"
            )
        await self.write({name: checked(name, typed) if typed else None})

    async def write(
        self, values: Mapping[str, object], tables: Tables | None = None, keys: Keys | None = None,
        *, without: Mapping[str, Sequence[str]] = MappingProxyType({}), tells: bool = True,
    ) -> None:  # fmt: skip
        """Change the settings file; with ``tells`` a running daemon reads it again.

        ``without`` names tables that go, by their list.

        Raises:
            UsageError: it cannot be written, or would not be valid.
        """
        if (path := self.path) is None:
            raise UsageError("this server has no settings file: `freshet serve` has one")
        self._refuse_overruled([*values, *(tables or {}), *(keys or {}), *without], path)
        gone = {name: dict.fromkeys(named) for name, named in without.items()}
        keys = {**(keys or {}), **gone}
        change = partial(write_settings, path, values, tables, keys, mode=0o600)
        async with self._turn:
            try:
                await asyncio.to_thread(change)
            except ConfigError as error:
                raise UsageError(str(error)) from error
            except OSError as error:
                raise UsageError(f"nothing was changed: {trouble(path, error)}") from error
        self.read()
        if tells:
            self.tell_daemon()

    def tell_daemon(self) -> None:
        """Have a running daemon read its settings and sites again."""
        with suppress(ProcessLookupError, PermissionError):
            if (process := self._daemon()[0]) is not None:
                os.kill(process, signal.SIGHUP)

    def _refuse_overruled(self, names: Iterable[str], path: Path) -> None:
        """Raise UsageError for a setting that another source than the file decides."""
        for name in names:
            origin, is_list = self._origins.get(name, "default"), name not in FORMS
            is_of_file = origin in ("default", "", f"file {self._source and self._source.file}")
            if not is_of_file and (is_list or not origin.startswith("file ")):
                raise UsageError(f"{name} comes from {origin}, not from {path}: change it there")

    def daemon_said(self) -> str:
        """Return the running daemon's answer to the last reload, or ""."""
        return self._daemon()[1]

    def _daemon(self) -> tuple[int | None, str]:
        """Return the process of the running daemon, and its last answer."""
        db = self._api.library.path
        owner = owner_of(db / SHARDS_FILE if is_folder(db) else db)
        if owner is None or owner.name != _DAEMON:
            return None, ""
        return owner.process, owner.answer.partition(" ")[2]


def checked(name: str, typed: str) -> object:
    """Parse the typed value of a setting; raises UsageError for a wrong one."""
    try:
        if name == "daemon.budget":
            budget_of(typed)
        elif name == "daemon.policy":
            ranker_of(typed, 1.0)
        return float(typed) if name in _NUMBERS else typed
    except (ValueError, PolicyError) as error:
        raise UsageError(f"{name}: {error}") from error


def _state(file: Path) -> object:
    """Return the differences that a change of a file makes."""
    try:
        told = file.stat()
    except OSError:
        return "missing"
    return told.st_mtime_ns, told.st_size, told.st_ino


def _of_buttons(settings: Settings) -> Iterator[SiteSetting]:
    for table in settings.sites:
        said: dict[str, Any] = table.model_dump(mode="json", include=set(BUTTONS))
        for key, value in said.items():
            if value is not None:
                yield SiteSetting(table.match, key, as_json(value), 0.0)
