"""Changes to a settings file that keep its comments and its order."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from freshet.config import ConfigError
from freshet.config.loading import check

#: Tables to append, by the name of their list: ``sites``, ``alerts.rules``.
Tables = Mapping[str, Sequence[Mapping[str, object]]]
#: Keys to set in tables of lists, by the name of the list and the name of the table.
#: None in place of the keys removes the table with its comments.
Keys = Mapping[str, Mapping[str, Mapping[str, object] | None]]
#: The key that names a table in its list; in all others it is ``name``.
_NAMED_BY: Final = {"sites": "match"}


def amended(
    text: str, file: Path, values: Mapping[str, object], tables: Tables | None = None,
    keys: Keys | None = None,
) -> str:  # fmt: skip
    r"""Return the text of a settings file with these values, tables and keys of tables.

    ``values`` are by dotted name; errors name ``file``. A value of None removes a key. ``keys``
    apply to the first table of that name, which is appended if it is missing. A table left with
    only its name is removed, unless it has a comment. Everything else is unchanged.

    Raises:
        ConfigError: the file, or the changed file, is invalid.

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
                _put(_group(place, groups), {key: value})
        _change_lists(document, wanted, tables or {}, keys or {})
        found = tomlkit.dumps(document)
        found += "\n" * (not found.endswith("\n"))
        is_right = _said(tomlkit.parse(found).unwrap()) == _said(wanted)
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


def _change_lists(document: Any, wanted: Any, tables: Tables, keys: Keys) -> None:
    """Append tables to lists, and set keys of tables, in the document and in its values."""
    for name, new in tables.items():
        for table in new:
            _append_to_both(document, wanted, name, table)
    for name, by_table in keys.items():
        for named, changed in by_table.items():
            _change(document, wanted, name, {_NAMED_BY.get(name, "name"): named}, changed)


def _group(place: Any, groups: Sequence[str]) -> Any:
    """Return a nested table, which is created if it is missing."""
    import tomlkit  # noqa: PLC0415 - see above

    for group in groups:
        if group not in place:
            place[group] = {} if type(place) is dict else tomlkit.table()
        place = place[group]
    return place


def _said(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values without empty groups."""
    return {name: value for name, value in values.items() if value != {}}


def _put(table: Any, changed: Mapping[str, object]) -> None:
    """Set keys of a table; a value of None removes the key."""
    for key, value in changed.items():
        if value is not None:
            table[key] = value
        elif key in table:
            del table[key]


def _change(
    document: Any, wanted: Any, name: str, named: dict[str, object],
    changed: Mapping[str, object] | None,
) -> None:  # fmt: skip
    """Set keys of the first table with this name in a list, in the document and in its values."""
    *groups, key = name.split(".")
    there = _group(wanted, groups).get(key, [])
    at = next((n for n, it in enumerate(there) if it.items() >= named.items()), None)
    if at is None:
        new = {key: value for key, value in (changed or {}).items() if value is not None}
        if new:
            _append_to_both(document, wanted, name, named | new)
        return
    for tables in (there, _group(document, groups)[key]):
        _put(tables[at], changed or {})
    if changed is None or there[at] == named:
        _remove(document, wanted, name, at, is_asked=changed is None)


def _remove(document: Any, wanted: Any, name: str, at: int, *, is_asked: bool) -> None:
    """Remove a table from its list; a table with comments only if ``is_asked``.

    Raises:
        ValueError: a comment follows it, which may belong to the next table.
    """
    *groups, key = name.split(".")
    text = _group(document, groups)[key][at].as_string()
    if is_asked and "#" in text[text.rfind("=") :].partition("\n")[2]:
        raise ValueError(f"a comment follows table {at + 1} of {name}")
    if not is_asked and "#" in text:
        return
    for place in (document, wanted):
        tables = _group(place, groups)
        del tables[key][at]
        if not tables[key]:
            del tables[key]


def _append_to_both(document: Any, wanted: Any, name: str, table: Mapping[str, object]) -> None:
    """Append a table to a list in the document and in its values."""
    _append(document, name, dict(table))
    *groups, key = name.split(".")
    _group(wanted, groups).setdefault(key, []).append(dict(table))


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
