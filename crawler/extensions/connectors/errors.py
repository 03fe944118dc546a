"""Errors of targets; each message is one line: what happened, to what, and what to do."""

from freshet.crawler.errors import CrawlError


class TargetError(CrawlError):
    """A target cannot be opened or written; the message gives the reason and the remedy."""


class TargetLost(TargetError):
    """A target that does not answer now: it is opened again after a while."""


def stale(name: str) -> TargetError:
    """Return the error of a target that another program has written meanwhile."""
    return TargetError(f"{name}: another `freshet sync` writes it; end that one, and run again")
