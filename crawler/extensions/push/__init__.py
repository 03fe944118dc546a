"""Push notifications to a daemon: WebSub and IndexNow.

Every crawl loads this module, which is short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from freshet.config.settings import Count, Networks, Number, SettingsGroup, like
from freshet.crawler.errors import CrawlError

if TYPE_CHECKING:
    from freshet.config.settings import Settings
    from freshet.crawler.run.hooks import Companion
    from freshet.crawler.run.network import Network
    from freshet.crawler.run.wiring import RunContext

STEPS: Final[Sequence[str]] = ("schema/0001_subscription.sql",)
DATED: Final[Mapping[str, Sequence[str]]] = {"subscription": ("next_at",)}

_PLACE = like(
    r"|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}",
    'be an address and a port, such as "127.0.0.1:8460"',
)
_PUBLIC_URL = like(r"|https?://[^\s?#/]+(/[^\s?#]*)?", "be an http or https URL without a query")


class ReceiverSettings(SettingsGroup):
    """``[receiver]``: listening for WebSub and pings."""

    listen: Annotated[str, _PLACE]
    public_url: Annotated[str, _PUBLIC_URL]
    proxies: Networks
    max_connections: Annotated[int, Number, Field(ge=8, le=10_000)]
    max_body_bytes: Annotated[int, Number, Field(ge=1_024, le=16 * 2**20)]
    lease_days: Annotated[float, Number, Field(gt=0, le=365)]
    max_subscriptions: Count


def check(settings: Settings) -> None:
    """Do nothing: only a daemon listens."""


def accompany(context: RunContext, _network: Network) -> Companion | None:
    """Return the receiver of a daemon with an address in its settings.

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
