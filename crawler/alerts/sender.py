"""The sender of the alerts of a run."""

from functools import partial

from freshet.crawler.alerts.messages import Composing, Importances
from freshet.crawler.alerts.outbox import Outbox
from freshet.crawler.alerts.rules import channels, receiver
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.run.wiring import RunContext


def sender(context: RunContext, resolver: CachingResolver, importances: Importances) -> Outbox:
    """Return the outbox of a run, not yet started; raises as :func:`channels`."""
    settings = context.settings
    outbox = Outbox(
        database=context.database,
        composing=Composing(
            context.database, context.parser, importances, context.clock, settings.presentation
        ),
        receiver_of=partial(receiver, settings=settings, resolver=resolver),
        limits=settings.alerts,
        clock=context.clock,
        rng=context.rng,
    )
    outbox.obey(settings.alerts, channels(settings.alerts))
    return outbox
