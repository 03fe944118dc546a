"""Alert rules from the settings: names and secrets are looked up here, changes are judged."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from ipaddress import ip_address, ip_network
from math import inf
from typing import Any, Final
from zoneinfo import ZoneInfo

from pydantic import SecretStr
from yarl import URL

from freshet.config.settings import Settings, masked
from freshet.config.sites import pattern
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.alerts.receivers import (
    LOG,
    RECEIVERS,
    AppriseReceiver,
    Logged,
    Receiver,
    Webhook,
    key_of,
)
from freshet.crawler.extensions.alerts.settings import AlertMode, Alerts
from freshet.crawler.extensions.alerts.settings import AlertRuleSettings as RuleSettings
from freshet.crawler.extensions.alerts.tables import AlertFilter
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, Network
from freshet.crawler.frontier.clock import Clock, calendar
from freshet.crawler.reduce.numbers import joined, normal, number_in
from freshet.crawler.reduce.tree import SelectorHints
from freshet.crawler.run.logs import hide, hide_url, read_secret
from freshet.crawler.run.network import user_agent
from freshet.entry_points import BrokenExtension, found, load

_HOUR_S: Final = 3_600.0
_WEB: Final = frozenset({"http", "https"})
_LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


# -- conditions --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """Texts and bounds of a number that a rule watches; one of them suffices.

    ``number`` are the texts before and behind the number. A number that is not there is beyond no
    bound.
    """

    appears: tuple[str, ...]
    vanishes: tuple[str, ...]
    bounds: Mapping[str, float]
    number: tuple[str, str]
    hints: SelectorHints | None

    def fired(self, before: Sequence[str], after: Sequence[str]) -> list[dict[str, Any]]:
        """Return the fulfilled conditions of a change, given the blocks before and after it."""
        states = [joined(before), joined(after)]
        old, new = (state.replace("\n", " ") for state in states)
        found: list[dict[str, Any]] = [
            {"what": what, "text": text}
            for what, texts, here, there in (
                ("appears", self.appears, new, old), ("vanishes", self.vanishes, old, new),
            )
            for text in texts
            if normal(text) in here and normal(text) not in there
        ]  # fmt: skip
        return found + self._crossed(*map(self.read, states)) if self.bounds else found

    def _crossed(self, was: float | None, now: float | None) -> list[dict[str, Any]]:
        """Return the bounds that a number has crossed, or that it has vanished."""
        if was is not None and now is None:
            # The page may show it elsewhere now, which the user should notice.
            return [{"what": "no number", "before": was, "after": now}]
        return [
            {"what": what, "bound": bound, "before": was, "after": now}
            for what, bound in self.bounds.items()
            if _is_beyond(now, what, bound) and not _is_beyond(was, what, bound)
        ]

    def on(self, blocks: Sequence[str]) -> str:
        """Describe the parts of it on a page."""
        text = joined(blocks)
        flat = text.replace("\n", " ")
        said = [
            f"“{each}” is {'there' if normal(each) in flat else 'not there'}"
            for each in (*self.appears, *self.vanishes)
        ]
        if self.bounds:
            limits = ", ".join(f"{what} {bound:.15g}" for what, bound in self.bounds.items())
            value = self.read(text)
            words = "no number" if value is None else f"the number is {value:.15g}"
            said.append(f"{words} (watched: {limits})")
        return ", ".join(said)

    def read(self, text: str) -> float | None:
        """Return the first number in the place where the rule looks for it, or None.

        ``text`` has :func:`joined` blocks, so that no number spans two of them.
        """
        return number_in(text, *self.number)


def _is_beyond(value: float | None, what: str, bound: float) -> bool:
    return value is not None and (value > bound if what == "above" else value < bound)


def in_words(holds: Mapping[str, Any]) -> str:
    """Describe a fulfilled condition, an item of :meth:`Condition.fired`."""
    what = holds["what"]
    if "text" in holds:
        return f"“{holds['text']}” {what}"
    if "why" in holds:
        return f"{what}: {holds['why']}"
    was, now, bound = (
        "none" if (value := holds.get(name)) is None else f"{value:.15g}"
        for name in ("before", "after", "bound")
    )
    return f"{what} any more, it was {was}" if now == "none" else f"{was} → {now}, {what} {bound}"


def condition_of(rule: RuleSettings) -> Condition | None:
    """Return the condition of a rule, None if any change suffices.

    Raises:
        CrawlError: its selector is not valid.
    """
    said = {"above": rule.above, "below": rule.below}
    bounds = {what: bound for what, bound in said.items() if bound is not None}
    texts = rule.appears or (), rule.vanishes or ()
    if not bounds and not any(texts):
        return None
    before, _, behind = (rule.number or "").partition("*")
    try:
        hints = SelectorHints((rule.within,), strict=True) if rule.within else None
    except ValueError as error:
        raise CrawlError(f"alerts.rules: {rule.name}: within: {error}") from error
    return Condition(*texts, bounds, (before, behind), hints)


@dataclass(frozen=True, slots=True)
class Channel:
    """A rule with its secrets: destination, the key that signs its messages, and their periods.

    A day ends at ``hour`` in ``zone``, also when its clocks change. A digest has the ``most`` most
    valuable pages; 0: all.
    """

    name: str
    url: str = field(repr=False)
    key: bytes | None = field(repr=False)
    mode: AlertMode = "immediate"
    hour: int = 0
    zone: str = "UTC"
    condition: Condition | None = None
    most: int = 0

    @property
    def target(self) -> str:
        """Return its destination, as it may be shown."""
        return self.url if self.url == LOG else masked(self.url)

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


def receiver(
    channel: Channel, settings: Settings, resolver: CachingResolver, clock: Clock
) -> Receiver:
    """Return the receiver of a channel; raises as :class:`AppriseReceiver`."""
    if channel.url == LOG:
        return Logged()
    timeout_s = settings.group(Alerts).timeout_s
    if (added := _added(channel, timeout_s)) is not None:
        return added
    url = URL(channel.url)
    if url.scheme in _WEB:
        network, crawl = settings.network, settings.crawl
        guard = AddressGuard(
            allow_private=network.allow_private_addresses,
            allow_networks=(*network.allow_networks, *_named(url.host or "", network.resolve)),
        )
        agent = user_agent(crawl.product, crawl.contact)
        return Webhook(
            channel.url, channel.key, timeout_s, guard=guard, resolver=resolver, user_agent=agent,
            clock=clock,
        )  # fmt: skip
    try:
        return AppriseReceiver(channel.url, timeout_s)
    except CrawlError as error:
        raise CrawlError(f"alerts.rules: {channel.name}: {channel.target}: {error}") from error


def _added(channel: Channel, timeout_s: float) -> Receiver | None:
    """Return the receiver that an extension has for the scheme of a channel's URL."""
    scheme = channel.url.partition("://")[0]
    for entry in found(RECEIVERS):
        if entry.name == scheme:
            try:
                made: Receiver = load(entry)(channel.url, channel.key, timeout_s)
            except BrokenExtension as error:
                raise CrawlError(f"alerts.rules: {channel.name}: {error}") from error
            return made
    return None


def _channel(alerts: Alerts, rule: RuleSettings) -> Channel:
    hour = alerts.hour if rule.hour is None else rule.hour
    url = _address(read_secret(f"alerts.rules: {rule.name}: url", rule.url))
    if url is None:
        raise CrawlError(
            f"alerts.rules: {rule.name}: url is neither a URL such as https://… nor log:"
        )
    mode, most = rule.mode or alerts.mode, alerts.most if rule.most is None else rule.most
    if rule.most and mode == "immediate":
        raise CrawlError(f"alerts.rules: {rule.name}: most is of digests; set mode to daily")
    channel = Channel(
        rule.name, url, None, mode, hour=hour, zone=rule.zone or alerts.zone,
        condition=condition_of(rule), most=0 if mode == "immediate" else most,
    )  # fmt: skip
    if rule.secret is None:
        return channel
    return replace(channel, key=_signing_key(rule.name, rule.secret))


def _signing_key(rule: str, said: SecretStr) -> bytes:
    """Return the key of a rule's secret, which no log shows from now on."""
    secret = read_secret(f"alerts.rules: {rule}: secret", said)
    hide(secret)
    hide(secret.removeprefix("whsec_"))
    try:
        return key_of(secret)
    except ValueError as error:
        raise CrawlError(
            f"alerts.rules: {rule}: secret: {error}; `openssl rand -base64 32` makes one"
        ) from error


def _address(url: str) -> str | None:
    """Return the address of a receiver with its scheme in lower case, or None if it is invalid."""
    if url == LOG:
        return url
    hide_url(url)
    scheme, mark, rest = url.partition("://")
    url = f"{scheme.lower()}://{rest}"
    is_wrong = not mark or not scheme or (scheme.lower() in _WEB and not _is_web(url))
    return None if is_wrong else url


def _is_web(url: str) -> bool:
    try:
        return bool(URL(url).host)
    except ValueError:
        return False


def _named(host: str, resolve: Mapping[str, str]) -> Sequence[Network]:
    """Return the networks that the settings allow by naming this host.

    An address and localhost are taken literally; the addresses of a name are resolved by DNS, and
    follow the rules for fetching unless the settings give the name an address.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return _LOOPBACK
    try:
        return (ip_network(ip_address(resolve.get(host, host))),)
    except ValueError:
        return ()
