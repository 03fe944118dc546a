"""A ledger of visits, as an extension of Freshet: its settings, its table and its verb.

Every crawl loads this module.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from freshet.config.settings import Number, SettingsGroup
from freshet.crawler.cli.verbs import Verb


class LedgerSettings(SettingsGroup):
    """``[ledger]``: what hosts are told, and what visits to them cost."""

    signature: str
    cost: Annotated[float, Number, Field(gt=0)]


STEPS: Final[Sequence[str]] = ("0001_ledger.sql",)
DATED: Final[Mapping[str, Sequence[str]]] = {}
VERBS: Final[Mapping[str, Verb]] = {
    "ledger": Verb(
        "Look", "Show how often each page was visited.", "freshet_ledger.verb:ledger_command"
    )
}
