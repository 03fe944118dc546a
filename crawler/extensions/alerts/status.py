"""The alerts of a store in ``freshet status`` and on the dashboard."""

from collections.abc import Iterable, Mapping, Sequence

from aiosqlite import Connection as Reader

from freshet.crawler.extensions.alerts import tables
from freshet.crawler.extensions.alerts.tables import RuleCounts
from freshet.crawler.run.hooks import StatusTable
from freshet.crawler.run.terminal import counted


async def read(db: Reader) -> list[RuleCounts]:
    """Return the counts of every rule."""
    return await tables.counts(db)


def merged(found: Iterable[Sequence[RuleCounts]]) -> list[RuleCounts]:
    """Return the counts of every rule in several stores together."""
    return tables.merged(found)


def lines(_state: Sequence[RuleCounts]) -> Mapping[str, str | None]:
    """Return no figure of the store."""
    return {}


def table(state: Sequence[RuleCounts]) -> StatusTable:
    """Return unsent alerts; ``freshet alerts`` has the details."""
    rows = [
        (each.rule, each.waiting, each.pending, each.failed, each.answer)
        for each in state
        if each.waiting or each.pending or each.failed
    ]
    return StatusTable("Alerts", ("rule", "waiting", "pending", "given up", "why"), rows)


def troubles(state: Sequence[RuleCounts]) -> Iterable[tuple[str, str]]:
    """Return the rules with messages that were given up."""
    for each in state:
        if each.failed:
            yield (
                (
                    f"{counted(each.failed, 'message')} of the rule {each.rule} could not be sent: "
                    f"{each.answer}"
                ),
                "`freshet alerts --retry` sends them again.",
            )
