"""Pages that are refused to a crawler, by host, in ``freshet status`` and on the dashboard.

Their last answer was 401, 403 or 429, or a captcha.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Final

from aiosqlite import Connection as Reader

from freshet.crawler.run.hooks import StatusTable
from freshet.crawler.run.terminal import counted
from freshet.storage.database import row_to

#: A host is listed from this number of refused pages on, and reported as a problem from this share
#: on, because nearly every site restricts some pages.
_LEAST: Final = 3
_SHARE: Final = 0.1
_SHOWN: Final = 20

#: Only hosts that refuse pages are read, by the index ``page_refused``, which has this condition.
_SQL: Final = f"""
    WITH refusing AS (
        SELECT host_id, sum(status IS 401) AS unauthorized, sum(status IS 403) AS forbidden,
            sum(status IS 429 OR rejected = 'rate_limited_page') AS too_many,
            sum(rejected = 'captcha' AND ifnull(status, 0) NOT IN (401, 403, 429)) AS challenged
        FROM (
            SELECT host_id, status, iif(rejected_digest IS NULL, '', rejected_as) AS rejected
            FROM page WHERE (status IN (401, 403, 429)
                OR rejected_as IN ('captcha', 'rate_limited_page'))
                AND last_kind IS NOT NULL AND alias_of IS NULL
        ) GROUP BY host_id
    )
    SELECT origin, (
            SELECT count(*) FROM page
            WHERE host_id = host.id AND last_kind IS NOT NULL AND alias_of IS NULL
        ), unauthorized, forbidden, too_many, challenged
    FROM refusing JOIN host ON host.id = host_id
    WHERE unauthorized + forbidden + too_many + challenged >= {_LEAST}
    ORDER BY unauthorized + forbidden + too_many + challenged DESC, origin
"""


@dataclass(frozen=True, slots=True)
class HostRefusals:
    """Of the ``visited`` pages of a host those that refuse a crawler, by how."""

    origin: str
    visited: int
    unauthorized: int
    forbidden: int
    too_many: int
    challenged: int

    @property
    def refused(self) -> int:
        """The number of refused pages."""
        return self.unauthorized + self.forbidden + self.too_many + self.challenged

    @property
    def advice(self) -> str:
        """The advice, by the most frequent form of refusal."""
        if self.too_many * 2 >= self.refused:
            return "Slow down: a longer delay_s for the host in [[sites]]."
        if self.unauthorized * 2 > self.refused:
            return "Log in: user and password, or bearer, for the host in [[sites]]."
        return (
            "Sign your requests (docs/guide/identity.md), and write to the site: `freshet about` "
            "makes the page that tells who you are."
        )


async def read(db: Reader) -> list[HostRefusals]:
    """Return the hosts that refuse pages, the most pages first."""
    return list(map(row_to(HostRefusals), await db.execute_fetchall(_SQL)))


def merged(found: Iterable[Sequence[HostRefusals]]) -> list[HostRefusals]:
    """Return the hosts of several stores together."""
    every = [each for some in found for each in some]
    return sorted(every, key=lambda it: (-it.refused, it.origin))


def lines(state: Sequence[HostRefusals]) -> Mapping[str, str | None]:
    """Return how many pages are refused."""
    if not state:
        return {}
    pages = counted(sum(it.refused for it in state), "page")
    return {"refused to a crawler": f"{pages} of {counted(len(state), 'host')}"}


def table(state: Sequence[HostRefusals]) -> StatusTable:
    """Return the hosts, by how they refuse."""
    columns = ("host", "visited", "401", "403", "429", "challenge", "advice")
    rows = [(*astuple(it), it.advice.partition(":")[0].partition(" (")[0]) for it in state]
    return StatusTable("Refused to a crawler", columns, rows[:_SHOWN])


def troubles(state: Sequence[HostRefusals]) -> Iterable[tuple[str, str]]:
    """Return the hosts that refuse a good part of their pages."""
    for it in state[:_SHOWN]:
        if it.refused > _SHARE * it.visited:
            told = f"{it.refused:,} of {counted(it.visited, 'page')} of {it.origin}"
            yield f"{told} are refused to a crawler.", it.advice
