"""Loading of settings from several sources, with the origin of each value.

In order of precedence: command line, environment (``FRESHET_GROUP__KEY``), the file given or
``./freshet.toml``, the user-wide file, ``defaults.toml``. Each setting is taken as a whole from the
first source that has it.
"""

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, cast

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from freshet.config import ConfigError
from freshet.config.settings import GROUPS, Settings, SettingsGroup, SiteSettings, settings_model
from freshet.config.sites import incomplete
from freshet.entry_points import folder, loaded

#: The origin of each setting (``group.key``): ``default``, ``file PATH``, ``environment NAME``,
#: ``command line`` or, for a program, ``settings``.
Origins: TypeAlias = Mapping[str, str]

_PREFIX = "FRESHET_"
_LONGEST_VALUE = 60
_MAX_BYTES = 1 << 20
#: The parser takes quadratic time in the parts of a dotted key.
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:"[^"\n]*"|'[^'\n]*'|[\w-]+)[ \t]*\.[ \t]*){32}""")
_SITES: Final = "sites"
#: Former settings, with their new names.
_RENAMED: Final = {
    "crawl.exchanges": "crawl.concurrent_requests",
    "daemon.least_discovery": "daemon.min_discovery",
    "daemon.most_discovery": "daemon.max_discovery",
    "daemon.new_page_worth": "daemon.new_page_value",
    "ephemeral.item_worth": "ephemeral.item_value",
}
_DELETED: Final = {
    "fetch.max_headers": "a response may have 1,000 header lines",
    "network.dns_max_ttl_s": "DNS answers are kept for a day at most",
    "network.dns_min_ttl_s": "DNS answers are kept for 5 s at least",
    "network.dns_negative_ttl_s": "a name that does not exist is asked for again after 60 s",
    "parse.inline_bytes": "pages of more than 512 KiB are parsed in a process of their own",
    "politeness.forbidden_burst": "the delay doubles after each five 403 responses in a row",
    "store.zstd_level": "bodies are stored at zstd's level 3",
}
#: Settings that errors do not quote, besides lists of tables, because they may be secret.
_NOT_QUOTED: Final = frozenset({"operation.token"})


@cache
def _lists() -> Mapping[str, Collection[str]]:
    """Return the settings that are lists of tables, with the keys of their tables."""
    groups = {name: field.annotation for name, field in settings_model().model_fields.items()}
    found = {
        f"{name}.{key}": list(table.model_fields)
        for name, group in groups.items()
        if isinstance(group, type) and issubclass(group, SettingsGroup)
        for key, table in group.LISTS.items()
    }
    return {**found, _SITES: list(SiteSettings.model_fields)}


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as given by a source."""

    value: object
    origin: str


_Layer: TypeAlias = dict[str, _Given]


def load(
    file: Path | None, overrides: Mapping[str, object], origin: str = "command line"
) -> tuple[Settings, Origins]:
    """Read the settings from all their sources.

    ``file`` is the requested one; without it, ``./freshet.toml`` is read if it exists. Both
    override the user-wide file. ``overrides`` are the values of ``origin`` by dotted name. Raises
    :class:`ConfigError`.
    """
    files_read = [each for each in (users_file(), HERE) if each is not None and _is_there(each)]
    if file is not None:
        files_read = [each for each in files_read if each != HERE] + [file]
    typed = {name: _Given(value, origin) for name, value in overrides.items()}
    given = _laid_over(*map(_file, files_read), _environment(), typed)
    return _validated(given), {name: each.origin for name, each in given.items()}


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """The file and options of a program's settings, to read them again."""

    config: Path | None
    overrides: Mapping[str, object]

    @property
    def file(self) -> Path:
        """The file in which the program's settings are changed; it need not exist yet."""
        others = [each for each in (HERE, users_file()) if each is not None and _is_there(each)]
        return self.config or next(iter(others), HERE)

    def read(self) -> tuple[Settings, Origins]:
        """Read the current settings; raise :class:`ConfigError`."""
        given = {name: value for name, value in self.overrides.items() if value is not None}
        return load(self.config, given)


def recorded(stored: Mapping[str, object]) -> Settings:
    """Return the settings that a run recorded, possibly with other extensions than now.

    Raises:
        ValidationError: a version with other settings recorded them.
    """
    model = settings_model()
    defaults = tomllib.loads(defaults_text())
    stored = {name: _with_new_names(name, table) for name, table in stored.items()}
    added = {
        name: defaults[name] for name in model.model_fields if name not in Settings.model_fields
    }
    known = {name: table for name, table in stored.items() if name in model.model_fields}
    return model.model_validate({**added, **known})


def check(text: str, file: Path) -> None:
    """Raise :class:`ConfigError` if the text is not a valid settings file."""
    _validated(_laid_over(_read(text.encode(), f"file {file}")))


def _laid_over(*layers: _Layer) -> _Layer:
    """Return the defaults, overridden by these layers; the last one has precedence."""
    given = _defaults()
    names = tuple(given)
    for layer in layers:
        renamed = _renamed(layer)
        _refuse_unknown(renamed, names)
        given |= renamed
    return given


#: The settings file of a working directory.
HERE: Final = Path("freshet.toml")


def users_file() -> Path | None:
    """Return the path of the user-wide file, in the XDG directory; None without a home."""
    home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not home.is_absolute():  # the XDG specification says to ignore it then
        try:
            home = Path.home() / ".config"
        except RuntimeError:
            # A container may run as a user that is unknown to its system.
            return None
    return home / "freshet" / "config.toml"


def _is_there(path: Path) -> bool:
    # Ignore the folder of another user.
    return os.access(path, os.F_OK) and path.is_file()


def _defaults() -> _Layer:
    return _layer(tomllib.loads(defaults_text()), "default")


def defaults_text() -> str:
    """Return the text of all default settings with their comments, those of extensions last."""
    modules = ["freshet.config", *(kind.__module__ for kind in loaded(GROUPS).values())]
    folders = dict.fromkeys(map(folder, modules))
    return "\n".join((each / "defaults.toml").read_text(encoding="utf-8") for each in folders)


def _file(path: Path) -> _Layer:
    origin = f"file {path}"
    try:
        with path.open("rb") as file:
            return _read(file.read(_MAX_BYTES + 1), origin)
    except OSError as error:
        why = f"{error.strerror or error}; check its path and permissions"
        raise ConfigError(f"{origin} cannot be read: {why}") from error


def _read(data: bytes, origin: str) -> _Layer:
    try:
        return _layer(_parsed(data.decode()), origin)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{origin} is not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from error
    except RecursionError as error:
        raise ConfigError(
            f"{origin} is nested too deeply, or larger than 1 MiB; shorten it"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{origin} is not TOML: {error}; correct it there") from error


def _parsed(text: str) -> dict[str, object]:
    if len(text) > _MAX_BYTES or _DEEP_KEY.search(text):
        raise RecursionError
    return tomllib.loads(text)


def _environment() -> _Layer:
    """Return the variables that name a group or a key; others with the prefix are ignored.

    The library ignores variables of unknown groups; here they are kept, and rejected later.
    """
    ours = [variable for variable in os.environ if variable.upper().startswith(_PREFIX)]
    names = {v.lower()[len(_PREFIX) :].replace("__", ".", 1): v for v in ours}
    read = _layer(EnvSettingsSource(settings_model())(), "")
    return {
        name: _Given(
            read[name].value if name in read else os.environ[variable], f"environment {variable}"
        )
        for name, variable in names.items()
        if "." in name or name in settings_model().model_fields
    }


def _layer(tables: Mapping[str, object], origin: str) -> _Layer:
    """Return the values by dotted name; a value in place of a table keeps its bare name."""
    values: dict[str, object] = {}
    for group, table in tables.items():
        if isinstance(table, Mapping):
            values |= {f"{group}.{key}": value for key, value in table.items()}
        else:
            values[group] = table
    return {name: _Given(value, origin) for name, value in values.items()}


def _renamed(layer: _Layer) -> _Layer:
    """Return a layer with former names of settings replaced by the new ones.

    Raises:
        ConfigError: a setting has both names.
    """
    found = dict(layer)
    for old in layer.keys() & _RENAMED.keys():
        new, given = _RENAMED[old], found.pop(old)
        if new in found:
            raise ConfigError(
                f"{given.origin}: {old} is now {new}, which is set as well; delete it"
            )
        found[new] = _Given(given.value, f"{given.origin}, as {old}")
    return found


def outdated(origins: Origins) -> Iterator[str]:
    """Yield a line on each given setting that was renamed or removed."""
    for old, new in _RENAMED.items():
        source, _, name = origins.get(new, "").rpartition(", as ")
        if name == old:
            yield f"{source}: {old} is now {new}; rename it there"
    for name in origins.keys() & _DELETED.keys():
        yield f"{origins[name]}: {name} is not a setting any more: {_DELETED[name]}; delete it"


def _with_new_names(group: str, table: object) -> object:
    """Return the settings of a group that a run recorded, under their current names."""
    if not isinstance(table, Mapping):
        return table
    named = {f"{group}.{key}": value for key, value in table.items()}
    return {
        _RENAMED.get(name, name).partition(".")[2]: value
        for name, value in named.items()
        if name not in _DELETED
    }


def _refuse_unknown(layer: _Layer, names: Collection[str]) -> None:
    for name, given in layer.items():
        if name not in names and name not in _DELETED:
            near = _nearest(name, names)
            raise ConfigError(f"{given.origin}: {name} is not a setting; {near}")
        if any("\ud800" <= letter <= "\udfff" for letter in str(given.value)):
            raise ConfigError(f"{given.origin}: {name} is not UTF-8; write it in UTF-8")


def _nearest(name: str, names: Collection[str]) -> str:
    """Return a hint to the setting that was probably meant."""
    if inside := [valid for valid in names if valid.startswith(f"{name}.")]:
        return f"it is a group, with settings such as {inside[0]}"
    key = name.rpartition(".")[2]
    by_key = {valid.partition(".")[2]: valid for valid in names}
    elsewhere = [valid for valid in names if valid.endswith(f".{key}")]
    near = elsewhere if len(elsewhere) == 1 else get_close_matches(name, names, n=1)
    near = near or [by_key[close] for close in get_close_matches(key, by_key, n=1)]
    return f"did you mean {near[0]}?" if near else "`freshet config show` lists all of them"


def _validated(given: _Layer) -> Settings:
    tables: dict[str, object] = {
        name: each.value for name, each in given.items() if name not in _DELETED
    }
    for name in [name for name in tables if "." in name]:
        group, _, key = name.partition(".")
        cast(dict[str, object], tables.setdefault(group, {}))[key] = tables.pop(name)
    try:
        settings = settings_model().model_validate(tables)
    except ValidationError as error:
        raise ConfigError(_sentence(error, given)) from error
    if (problem := incomplete(settings.sites)) is not None:
        raise ConfigError(f"{given['sites'].origin}: {problem}")
    return settings


def _sentence(error: ValidationError, given: _Layer) -> str:
    """Describe the first error in one line: the place, the fault, the accepted values."""
    first, *others = error.errors(include_url=False)
    depth = 1 if str(first["loc"][0]) in given else 2
    name = ".".join(str(part) for part in first["loc"][:depth])
    shown = f"{name} = {_quoted(given[name].value)}"
    if name in {*_NOT_QUOTED, *_lists()}:
        loc = first["loc"][depth:]
        inside = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
        shown = name + "".join(inside)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        # Groups were checked before, so this is a key of a table in a list.
        near = get_close_matches(str(first["loc"][-1]), _lists()[name], n=1)
        message = "there is no such key" + (f"; did you mean {near[0]}?" if near else "")
    elif first["type"] == "model_type":
        message = f"each is a table [[{name}]]"
        message += "; --sites names a list of sites to crawl" * (name == _SITES)
    more = f" (and {len(others)} more)" if others else ""
    return f"{given[name].origin}: {shown}: {message[0].lower()}{message[1:]}{more}"


def _quoted(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_VALUE else shown[: _LONGEST_VALUE - 1] + "…"
