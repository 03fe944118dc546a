"""The settings of what a daemon tells others, and hears from them."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo
from pydantic import field_validator as check

from freshet.config.values import (
    Count,
    Factor,
    Group,
    Networks,
    Number,
    PositiveSeconds,
    Seconds,
    Secret,
    Share,
    Text,
    TimeZone,
    endpoint,
)

_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")
_PUBLIC_URL = re.compile(r"https?://[^\s?#/]+(/[^\s?#]*)?")


class Receiver(Group):
    """Where a daemon hears what is pushed: WebSub and pings."""

    listen: str
    public_url: str
    proxies: Networks
    max_connections: Annotated[int, Number, Field(ge=8, le=10_000)]
    max_body_bytes: Annotated[int, Number, Field(ge=1_024, le=16 * 2**20)]
    lease_days: Annotated[float, Number, Field(gt=0, le=365)]
    max_subscriptions: Count

    @check("listen")
    @classmethod
    def _is_place(cls, value: str) -> str:
        if value and not _PLACE.fullmatch(value):
            raise ValueError('input should be an address and a port, such as "127.0.0.1:8460"')
        return value

    @check("public_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if value and not _PUBLIC_URL.fullmatch(value):
            raise ValueError("input should be an http or https URL without a query")
        return value


class Operation(Group):
    """What whoever runs a daemon sees of it. ``listen`` is ADDRESS:PORT, or empty for none."""

    beyond_loopback: bool
    listen: str
    host_names: Annotated[tuple[Annotated[str, Field(pattern=r"^[a-zA-Z0-9.-]+$")], ...], Text]
    log_format: Literal["auto", "console", "json"]

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Address and port to listen on; None: nowhere."""
        return endpoint(self.listen) if self.listen else None

    @check("listen")
    @classmethod
    def _is_an_endpoint(cls, value: str, info: ValidationInfo) -> str:
        if not value:
            return value
        address, _ = endpoint(value)
        if not ip_address(address).is_loopback and not info.data.get("beyond_loopback"):
            raise ValueError(
                "input should be a loopback address such as 127.0.0.1:9464; for others set "
                "operation.beyond_loopback = true, too"
            )
        return value


AlertKinds = Annotated[tuple[Literal["changed", "new", "gone"], ...], Text, Field(min_length=1)]
AlertMode = Literal["immediate", "hourly", "daily"]
Hour = Annotated[int, Number, Field(ge=0, le=23)]


class AlertRule(Group):
    """Who is told of which pages; None: as the group says."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    match: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    url: Secret
    secret: Secret | None = None
    kinds: AlertKinds | None = None
    mode: AlertMode | None = None
    hour: Hour | None = None
    zone: TimeZone | None = None

    @check("match", mode="before")
    @classmethod
    def _is_one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class Alerts(Group):
    """Who is told of what was observed, and how hard that is tried."""

    kinds: AlertKinds
    mode: AlertMode
    hour: Hour
    zone: TimeZone
    timeout_s: PositiveSeconds
    back_off_initial_s: PositiveSeconds
    back_off_factor: Factor
    back_off_max_s: PositiveSeconds
    back_off_jitter: Share
    give_up_s: Seconds
    rules: Annotated[tuple[AlertRule, ...], Text]

    @check("rules")
    @classmethod
    def _has_names_of_its_own(cls, value: tuple[AlertRule, ...]) -> tuple[AlertRule, ...]:
        names = [rule.name for rule in value]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"input should name every rule otherwise; {twice} stands there twice")
        return value
