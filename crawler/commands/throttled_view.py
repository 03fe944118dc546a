"""What keeps URLs of a site from being crawled as its user sees it: a table, and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from freshet.crawler.commands.display import counted, plain, show_line, show_list
from freshet.crawler.commands.throttled import Throttled, still, why
from freshet.storage.tables.url_patterns import Throttle

_THROTTLED_HEADER: Final = ("held back", "what", "why", "still", "for example")
#: Rows of the table; JSON has all.
_SHOWN: Final = 40


def print_throttled(found: Throttled) -> None:
    """How far the site was crawled, and what was held back and why."""
    reach = found.reach
    known = f"{found.site}: {counted(reach.known, 'URL')} known, {reach.asked:,} crawled"
    waiting = f", {reach.waiting:,} waiting" if reach.waiting else ""
    if not found.throttles:
        show_line(f"{known}{waiting}; no URL was throttled", "bold")
        return
    show_line(f"{known}{waiting}, {reach.held:,} held back", "bold")
    show_list(
        "What was throttled",
        _THROTTLED_HEADER,
        [_throttled_row(found, each) for each in found.throttles],
        _SHOWN,
    )
    show_line(
        "Read: asked for, with an answer. Of their own: a text that no other page has, and more "
        "than a heading that no other page shows. A pattern is opened again when its pages do.",
        "dim",
    )


def throttled_as_json(found: Throttled) -> dict[str, object]:
    """The same as JSON values; times in Unix seconds."""
    return {
        "site": found.site,
        **asdict(found.reach),
        "throttled": [
            asdict(each)
            | {"host": found.origins[each.host_id], "why": why(each), "still": still(each)}
            for each in found.throttles
        ],
        "patterns": [
            {
                "host": found.origins[each.host_id], "pattern": each.pattern, "read": each.read,
                "own": each.own, "yield": each.shrunk,
            }
            for each in found.yields
        ],
    }  # fmt: skip


def _throttled_row(
    found: Throttled, each: Throttle
) -> tuple[int, str, str, str | None, str | None]:
    origin = found.origins[each.host_id] if len(found.origins) > 1 else ""
    what = each.shape if each.shape is not None else each.kind
    return each.held, plain(f"{origin}{what}"), plain(why(each)), still(each), each.example
