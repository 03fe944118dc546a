"""The exceptions that cross modules."""

from pathlib import Path

from freshet.storage.entries import Outcome
from freshet.storage.errors import StoreError


class UnknownPage(StoreError):
    """The store lacks a page, or one of its versions or texts; the message says which."""


class CrawlError(Exception):
    """A crawl cannot be done as requested; the message is one line for the user."""


class UsageError(CrawlError, ValueError):
    """Wrong usage: another command line or another file would work."""


class NotMade(Exception):
    """The crawler could not make a request, and should make no other one for ``hold_s`` seconds.

    Its host should wait for ``rest_s``, if other hosts have work. The network has been away
    ``since`` that time; None: it is not the cause. A request that ``is_sent`` may have reached a
    server.
    """

    def __init__(
        self, why: str, hold_s: float, *, rest_s: float = 0.0, since: float | None = None,
        is_sent: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(why)
        self.hold_s, self.rest_s = hold_s, rest_s
        self.since = since
        self.is_sent = is_sent


class Unfetched(Exception):
    """A response has no usable body: ``reason`` is a stable word, ``detail`` a line for people."""

    def __init__(self, reason: str, detail: str, outcome: Outcome = "failed") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = " ".join(detail.split())[:300]
        self.outcome = outcome


class ResolverSilent(OSError):
    """No name server answered, so nothing is known about a name."""


class NoSuchHost(OSError):
    """A name does not exist or has no address, so an early retry is useless."""


class Refused(Exception):
    """A pushed request is refused with this ``status`` and reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class ShardUnreachable(Exception):
    """Another shard or the coordinator did not answer."""


class ArchiveInUse(Exception):
    """Another process writes an archive."""


class ArchiveUnwritable(Exception):
    """An archive cannot be written now (``why``), and no entry is lost."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(why)
        self.folder = folder
        self.why = why


class UnreadableList(Exception):
    """A list has the wrong format, or is too large; ``advice`` is what to do."""

    def __init__(self, why: str, advice: str = "export it again, or name another file") -> None:
        super().__init__(why)
        self.advice = advice


class BrokenFile(Exception):
    """A file is damaged or ends early; the message names the place. The rest has been returned."""


class TreeLimit(Exception):
    """A page exceeds a limit of its tree; the message names the limit."""


class ParserLost(Exception):
    """The parser process gave no answer, through no fault of the page; the message says why."""


def needs_extra(what: str, extra: str) -> str:
    """Return the message about a missing extra."""
    # Name no command: on the public package index, "freshet" is another program.
    return f"{what} needs the extra {extra!r}: install Freshet with it (docs/guide/install.md)"
