"""The settings: frozen, one group per concern, units in names, ranges checked.

No default stands here: ``defaults.toml`` holds every value beside its reason, and a
missing one is an error. Sizes are bytes, names end in their unit where there is one
(``_s``, ``_days``, ``_bytes``).
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic import field_validator as check
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from freshet.config.outward import Alerts, Operation, Receiver
from freshet.config.values import (
    Addresses,
    Count,
    Endings,
    Factor,
    Group,
    Groups,
    Networks,
    Number,
    Positive,
    PositiveSeconds,
    Seconds,
    Share,
    Text,
    Weight,
)

_CONTACT = re.compile(r"(https?://|mailto:)[!-'*-~]+")
_PRODUCT = re.compile(r"[A-Za-z_-]+")


def _header_text(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError("input should be printable ASCII: it is sent in a header")
    return value


#: A capture may be taken back, and the page then stands as before it.
LEAST_SKETCHES = 3
#: For so long it is looked up what was told of an observation that is seen otherwise by now.
LEAST_ALERT_DAYS = 30


class Crawl(Group):
    """One run: who we are, how far it goes, and when it ends."""

    product: str
    contact: str
    scope: Literal["host", "domain", "prefix", "list"]
    max_pages: Count
    max_depth: Count
    time_limit_s: Seconds
    patience_s: Seconds
    max_redirects: Annotated[int, Number, Field(ge=0, le=50)]
    exchanges: Annotated[int, Number, Field(ge=1, le=10_000)]
    attempts: Positive
    permanent_recheck_days: Seconds

    @check("product")
    @classmethod
    def _is_token(cls, value: str) -> str:
        if not _PRODUCT.fullmatch(value):
            raise ValueError("input should consist of letters, _ and - (RFC 9309, section 2.2.1)")
        return value

    @check("contact")
    @classmethod
    def _is_contact(cls, value: str) -> str:
        if value and not _CONTACT.fullmatch(value):
            raise ValueError("input should be a URL: https://…, http://… or mailto:…")
        return value


class Politeness(Group):
    """How a server is spared."""

    key: Literal["host", "domain", "ip"]
    groups: Groups
    delay_s: Seconds
    connections_per_host: Positive
    crawl_delay_cap_s: Seconds
    slow_factor: Annotated[float, Number, Field(ge=0)]
    slow_cap_s: Seconds
    back_off_initial_s: PositiveSeconds
    back_off_factor: Factor
    back_off_max_s: PositiveSeconds
    back_off_jitter: Share
    failures_to_park: Positive
    retry_after_cap_s: Seconds
    forbidden_burst: Positive


class Fetch(Group):
    """The limits of one exchange."""

    connect_timeout_s: PositiveSeconds
    headers_timeout_s: PositiveSeconds
    body_timeout_s: PositiveSeconds
    min_rate_bytes_per_s: Count
    rate_window_s: PositiveSeconds
    max_headers: Positive
    max_header_bytes: Positive
    max_body_bytes: Positive
    accept_language: Annotated[str, AfterValidator(_header_text)]
    excluded_extensions: Endings


class Network(Group):
    """Which addresses may be contacted, and how names are resolved."""

    allow_private_addresses: bool
    allow_networks: Networks
    resolve: Addresses
    dns_min_ttl_s: Seconds
    dns_max_ttl_s: Seconds
    dns_negative_ttl_s: Seconds

    @check("dns_max_ttl_s")
    @classmethod
    def _is_at_least_the_minimum(cls, value: float, info: ValidationInfo) -> float:
        least = info.data.get("dns_min_ttl_s", 0.0)
        if value < least:
            raise ValueError(f"input should be at least dns_min_ttl_s, which is {least:g}")
        return value


class Robots(Group):
    """robots.txt (RFC 9309); its bounds are the RFC's."""

    max_age_s: Annotated[float, Number, Field(ge=0, le=86_400)]
    stale_max_age_s: Seconds
    max_bytes: Annotated[int, Number, Field(ge=512_000)]
    max_redirects: Annotated[int, Number, Field(ge=0, le=50)]
    sitemaps: bool


class Sitemaps(Group):
    """How much of a sitemap is read."""

    max_bytes: Positive
    max_entries: Positive


class Signals(Group):
    """Where to listen for news of pages."""

    max_feeds: Count
    well_known: bool


class Traps(Group):
    """Bounds for URLs that a site makes up without end."""

    max_url_length: Positive
    max_path_segments: Positive
    max_repeats: Positive
    max_session_urls: Count
    max_calendar_urls: Count
    max_query_urls: Count
    max_parameters: Positive
    min_combined: Count
    min_copy_urls: Count
    copy_share: Share


class Change(Group):
    """Which changes of a page's main text are significant."""

    significant_below: Share
    probe: bool


class PageRule(Group):
    """What holds for the pages whose URL matches; None is not said."""

    match: Annotated[str, Field(min_length=1)]
    never: bool | None = None
    importance: Annotated[float, Number, Field(ge=0)] | None = None
    least_days: Seconds | None = None
    most_days: PositiveSeconds | None = None
    ephemeral: bool | None = None
    half_life_hours: Weight | None = None

    @check("half_life_hours")
    @classmethod
    def _is_of_a_source(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("ephemeral") is False:
            raise ValueError("input should not stand where ephemeral is false")
        return value

    @check("most_days")
    @classmethod
    def _is_at_least_the_least(cls, value: float | None, info: ValidationInfo) -> float | None:
        least = info.data.get("least_days")
        if value is not None and least is not None and value < least:
            raise ValueError(f"input should be at least least_days, which is {least:g}")
        return value


class Ephemeral(Group):
    """How pages of which the news counts compete with those that are kept fresh."""

    recognise: bool
    half_life_hours: Weight
    item_worth: Weight
    cost: Literal["request", "delay"]


class Daemon(Group):
    """What a daemon may spend, and how; the command line says it, too."""

    budget: str
    policy: str
    importance: Literal["list", "constant", "depth", "pagerank"]
    audit_share: Share
    new_page_worth: Weight
    least_discovery: Share
    most_discovery: Share
    rules: Annotated[tuple[PageRule, ...], Text]

    @check("most_discovery")
    @classmethod
    def _is_not_below_least(cls, value: float, info: ValidationInfo) -> float:
        least = info.data.get("least_discovery")
        if least is not None and value < least:
            raise ValueError(f"input should be at least least_discovery, which is {least:g}")
        return value


class Parse(Group):
    """How much work one page may cause, and where sites have their main text."""

    time_limit_s: PositiveSeconds
    inline_bytes: Count
    max_links: Positive
    include: Groups
    ignore: Groups


class Store(Group):
    """What the database keeps, and how it is written."""

    bodies_per_page: Positive
    body_age_days: Seconds
    gone_body_age_days: Seconds
    sketches_per_page: Count
    failure_age_days: Seconds
    link_age_days: Seconds
    alert_age_days: Seconds
    batch: Annotated[int, Number, Field(ge=1, le=10_000)]
    zstd_level: Annotated[int, Number, Field(ge=1, le=22)]

    @check("gone_body_age_days", "failure_age_days", "link_age_days")
    @classmethod
    def _is_for_ever_or_a_day(cls, value: float) -> float:
        if 0 < value < 1:
            raise ValueError("input should be 0 (kept for ever), or at least 1 day")
        return value

    @check("alert_age_days")
    @classmethod
    def _is_for_ever_or_a_month(cls, value: float) -> float:
        if 0 < value < LEAST_ALERT_DAYS:
            raise ValueError(
                f"input should be 0 (kept for ever), or at least {LEAST_ALERT_DAYS} days"
            )
        return value

    @check("sketches_per_page")
    @classmethod
    def _is_all_or_some(cls, value: int) -> int:
        if 0 < value < LEAST_SKETCHES:
            raise ValueError(f"input should be 0 (all), or at least {LEAST_SKETCHES}")
        return value


class Archive(Group):
    """Where what went over the wire is kept, as WARC files; an empty ``dir``: nowhere."""

    dir: str
    max_file_bytes: Annotated[int, Number, Field(ge=1_000_000)]


class Settings(BaseSettings):
    """Every setting of Freshet; the order of the groups follows a page through it."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="FRESHET_",
        env_nested_delimiter="__",
        env_nested_max_split=1,
        # The fields read text themselves, in the syntax of the file.
        enable_decoding=False,
    )

    crawl: Crawl
    politeness: Politeness
    fetch: Fetch
    network: Network
    robots: Robots
    sitemaps: Sitemaps
    signals: Signals
    traps: Traps
    change: Change
    daemon: Daemon
    ephemeral: Ephemeral
    receiver: Receiver
    parse: Parse
    store: Store
    archive: Archive
    operation: Operation
    alerts: Alerts

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments only: ``freshet.config.loading`` lays the sources over each other.

        It remembers where each value came from, which the library does not.
        """
        return (init_settings,)
