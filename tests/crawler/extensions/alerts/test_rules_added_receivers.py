"""Receivers that a package adds, by the scheme of their URLs."""

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.alerts import rules
from freshet.crawler.extensions.alerts.receivers import RECEIVERS, Delivery
from freshet.crawler.extensions.alerts.rules import Channel, receiver
from freshet.crawler.extensions.alerts.settings import Alerts
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.frontier.clock import VirtualClock
from tests.integration.quick import quick


@dataclass(slots=True)
class Spooled:
    url: str
    key: bytes | None
    timeout_s: float

    async def deliver(self, message: Message, now: float) -> Delivery:
        return Delivery("taken")

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("their_receivers")
    vars(module).update(Spooled=Spooled)
    monkeypatch.setitem(sys.modules, "their_receivers", module)
    places = {"spool": "their_receivers:Spooled", "absent": "no_such_module:Spooled"}
    entries = tuple(EntryPoint(*each, RECEIVERS) for each in places.items())
    monkeypatch.setattr(rules, "found", lambda _group: entries)


async def test_the_scheme_of_a_url_chooses_the_receiver() -> None:
    made = receiver(
        Channel("a", "spool://here", b"key"), quick(), CachingResolver(), VirtualClock(0)
    )
    assert made == Spooled("spool://here", b"key", quick().group(Alerts).timeout_s)


async def test_one_that_cannot_be_loaded_is_told_in_one_line() -> None:
    with pytest.raises(CrawlError, match=r"alerts.rules: a: the extension absent \(no_such_module"):
        receiver(Channel("a", "absent://x", None), quick(), CachingResolver(), VirtualClock(0))
