"""Writing into a settings file, which keeps its comments and its order."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from freshet.config import ConfigError
from freshet.config.loading import check

#: Tables to append, by the name of their list: ``sites``, ``alerts.rules``.
Tables = Mapping[str, Sequence[Mapping[str, object]]]


def amended(
    text: str, file: Path, values: Mapping[str, object], tables: Tables | None = None
) -> str:
    r"""Return the text of a settings file with these values, and more tables in its lists.

    ``values`` are by dotted name; ``file`` is named in errors. All else stays as it was written.

    Raises:
        ConfigError: the file, or what would become of it, is not valid.

    >>> print(amended("[crawl]  # mine\n", Path("freshet.toml"), {"crawl.max_pages": 5}), end="")
    [crawl]  # mine
    max_pages = 5
    """
    import tomlkit  # noqa: PLC0415 - slow to import, and few need it
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - likewise

    check(text, file)
    try:
        document: Any = tomlkit.parse(text)
        wanted = document.unwrap()
        for name, value in values.items():
            *groups, key = name.split(".")
            for place in (document, wanted):
                _group(place, groups)[key] = value
        for name, new in (tables or {}).items():
            for table in new:
                _append(document, name, dict(table))
                *groups, key = name.split(".")
                _group(wanted, groups).setdefault(key, []).append(dict(table))
        found = tomlkit.dumps(document)
        is_right = tomlkit.parse(found).unwrap() == wanted
    except (TOMLKitError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"file {file} cannot be changed by a program: {error}; edit it by hand"
        ) from error
    if not is_right:
        raise ConfigError(
            f"file {file} is written in a way that a program cannot change; edit it by hand"
        )
    check(found, file)
    return found


def _group(place: Any, groups: Sequence[str]) -> Any:
    """Return a table inside another, which is made where it is missing."""
    import tomlkit  # noqa: PLC0415 - see above

    for group in groups:
        if group not in place:
            place[group] = {} if type(place) is dict else tomlkit.table()
        place = place[group]
    return place


def _append(document: Any, name: str, table: dict[str, object]) -> None:
    """Append a table to a list of tables, in the form that the list has."""
    import tomlkit  # noqa: PLC0415 - see above

    *groups, key = name.split(".")
    place = _group(document, groups)
    if key in place and not isinstance(place[key], tomlkit.items.AoT):
        # sites = [{ … }]
        inline = tomlkit.inline_table()
        inline.update(table)
        place[key].append(inline)
        return
    item = tomlkit.table()
    item.update(table)
    if document:
        item.trivia.indent = "\n"
    place.setdefault(key, tomlkit.aot()).append(item)
