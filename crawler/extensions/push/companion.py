"""The companion of a daemon that receives pushes; loaded by every crawl, and therefore short."""

from freshet.config.settings import Settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.push.settings import ReceiverSettings
from freshet.crawler.hooks import Companion
from freshet.crawler.network import Network
from freshet.crawler.run.wiring import RunContext


def check(settings: Settings) -> None:
    """Find nothing wrong: only a daemon listens."""


def accompany(context: RunContext, _network: Network) -> Companion | None:
    """Return the receiver of a daemon whose settings name an address.

    Raises:
        CrawlError: ``public_url`` is set without ``listen``.
    """
    settings = context.settings.group(ReceiverSettings)
    if not context.lasting:
        return None
    if settings.listen:
        from freshet.crawler.extensions.push.receiver import PushReceiver  # noqa: PLC0415 - or not

        return PushReceiver(context, settings)
    if settings.public_url:
        raise CrawlError(
            "receiver.public_url is set, but receiver.listen is not: set it to the address to "
            'listen on, such as "127.0.0.1:8460"'
        )
    return None
