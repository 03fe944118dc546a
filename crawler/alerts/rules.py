"""Alert rules from the settings: names and secrets are looked up here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from ipaddress import ip_address, ip_network
from math import inf
from typing import Final
from zoneinfo import ZoneInfo

from yarl import URL

from freshet.config.settings import AlertMode, Alerts, Settings, masked
from freshet.config.settings import AlertRuleSettings as RuleSettings
from freshet.config.sites import pattern
from freshet.crawler.alerts.receivers import Apprised, Receiver, Webhook, key_of
from freshet.crawler.clock import calendar
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, Network
from freshet.crawler.network import user_agent
from freshet.crawler.service.logs import hide, hide_url, read_secret
from freshet.crawler.tally import CrawlError
from freshet.storage.tables.alerts import AlertFilter

_HOUR_S: Final = 3_600.0
_WEB: Final = frozenset({"http", "https"})
_LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Channel:
    """A rule with its secrets: destination, the key that signs its messages, and their periods.

    A day ends at ``hour`` in ``zone``, whatever its clocks do.
    """

    name: str
    url: str = field(repr=False)
    key: bytes | None = field(repr=False)
    mode: AlertMode = "immediate"
    hour: int = 0
    zone: str = "UTC"

    @property
    def target(self) -> str:
        """Return its destination, as it may be shown."""
        return masked(self.url)

    def period(self, at: float) -> tuple[float, float]:
        """Return the period (Unix seconds, the end excluded) that a moment belongs to.

        Each ends where the next begins. An immediate alert belongs to a period that is over.
        """
        if self.mode == "immediate":
            return -inf, -inf
        if self.mode == "hourly":
            begin = at // _HOUR_S * _HOUR_S
            return begin, begin + _HOUR_S
        zone = UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        day = calendar(at).astimezone(zone).date()
        # The clocks may go back over midnight, so that a day may lie ahead of its date.
        ends = [
            datetime.combine(day + timedelta(days=n), time(self.hour), zone).timestamp()
            for n in range(-2, 3)
        ]
        return max(end for end in ends if end <= at), min(end for end in ends if end > at)


def matching(alerts: Alerts) -> list[AlertFilter]:
    """Return the rules as the store applies them."""
    return [
        AlertFilter(
            rule.name,
            frozenset(rule.kinds or alerts.kinds),
            re.compile("|".join(f"(?:{pattern(each).pattern})" for each in rule.match)),
        )
        for rule in alerts.rules
    ]


def channels(alerts: Alerts) -> list[Channel]:
    """Return the rules as the sender uses them; from now on no log line holds their secrets.

    Raises:
        CrawlError: a secret or a URL is missing or not valid.
    """
    return [_channel(alerts, rule) for rule in alerts.rules]


def receiver(channel: Channel, settings: Settings, resolver: CachingResolver) -> Receiver:
    """Return the receiver of a channel; raises as :class:`Apprised`."""
    timeout_s = settings.alerts.timeout_s
    url = URL(channel.url)
    if url.scheme in _WEB:
        network, crawl = settings.network, settings.crawl
        guard = AddressGuard(
            allow_private=network.allow_private_addresses,
            allow_networks=(*network.allow_networks, *_named(url.host or "", network.resolve)),
        )
        agent = user_agent(crawl.product, crawl.contact)
        return Webhook(
            channel.url, channel.key, timeout_s, guard=guard, resolver=resolver, user_agent=agent
        )
    try:
        return Apprised(channel.url, timeout_s)
    except CrawlError as error:
        raise CrawlError(f"alerts.rules: {channel.name}: {channel.target}: {error}") from error


def _channel(alerts: Alerts, rule: RuleSettings) -> Channel:
    hour = alerts.hour if rule.hour is None else rule.hour
    url = read_secret(f"alerts.rules: {rule.name}: url", rule.url)
    hide_url(url)
    scheme, mark, rest = url.partition("://")
    url = f"{scheme.lower()}://{rest}"
    if not mark or not scheme or (scheme.lower() in _WEB and not _is_web(url)):
        raise CrawlError(f"alerts.rules: {rule.name}: url is not a URL such as https://…")
    channel = Channel(
        rule.name, url, None, rule.mode or alerts.mode, hour=hour, zone=rule.zone or alerts.zone
    )
    if rule.secret is None:
        return channel
    secret = read_secret(f"alerts.rules: {rule.name}: secret", rule.secret)
    hide(secret)
    hide(secret.removeprefix("whsec_"))
    try:
        return replace(channel, key=key_of(secret))
    except ValueError as error:
        raise CrawlError(f"alerts.rules: {rule.name}: secret: {error}") from error


def _is_web(url: str) -> bool:
    try:
        return bool(URL(url).host)
    except ValueError:
        return False


def _named(host: str, resolve: Mapping[str, str]) -> Sequence[Network]:
    """Return the networks that the settings allow by naming this host.

    An address and localhost are meant literally; the addresses of a name come from DNS, and
    follow the rules for fetching unless the settings give the name an address.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return _LOOPBACK
    try:
        return (ip_network(ip_address(resolve.get(host, host))),)
    except ValueError:
        return ()
