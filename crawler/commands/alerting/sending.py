"""The sender of an invocation, wired."""

from __future__ import annotations

from functools import partial

from freshet.crawler.commands.alerting.composing import Composing, Importances
from freshet.crawler.commands.alerting.outbox import Outbox
from freshet.crawler.commands.alerting.rules import channels, receiver
from freshet.crawler.commands.assembly import Surroundings
from freshet.crawler.network.resolver import CachingResolver


def sender(around: Surroundings, resolver: CachingResolver, importances: Importances) -> Outbox:
    """The outbox of a run by its settings; it has not begun to send.

    Raises:
        CrawlError: something in the rules cannot be used.
    """
    settings = around.settings
    composing = Composing(around.database, around.parser, importances, around.clock)
    receiver_of = partial(receiver, settings=settings, resolver=resolver)
    outbox = Outbox(
        around.database, composing, receiver_of, settings.alerts, around.clock, around.rng
    )
    outbox.obey(settings.alerts, channels(settings.alerts))
    return outbox
