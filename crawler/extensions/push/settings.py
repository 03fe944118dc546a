"""The settings ``[receiver]``; ``defaults.toml`` beside this module has their defaults."""

from typing import Annotated

from pydantic import Field

from freshet.config.settings import Count, Networks, Number, SettingsGroup, like

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
