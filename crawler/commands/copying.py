"""How the copying of a store is shown, which takes a while where the store is large."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from freshet.crawler.commands.console import err
from freshet.crawler.commands.display import counted, moment, size
from freshet.storage.maintenance import Copied, Progress


@contextmanager
def copying() -> Iterator[Progress]:
    """Shows what is being done on a terminal, and nothing elsewhere."""
    with err.status("copying") as status:

        def told(what: str, share: float) -> None:
            status.update(f"{what} {share:.0%}" if share else what)

        yield told


def copied_words(copied: Copied, now: float) -> str:
    """What is in a copy: ``12.3 MB, 400 pages, 2,000 observations until 2026-…, sound``."""
    until = "" if copied.newest_at is None else f" until {moment(copied.newest_at, now)}"
    return (
        f"{size(copied.size_bytes)}, {counted(copied.pages, 'page')}, "
        f"{counted(copied.observations, 'observation')}{until}; sound"
    )
