"""The settings: frozen, one group per concern, units in names, ranges checked.

Defaults are only in ``defaults.toml``, each with its reason; a missing one is an error. Sizes are
bytes. Names end in their unit, if they have one (``_s``, ``_days``, ``_bytes``).
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    ValidationInfo,
    create_model,
)
from pydantic import field_validator as check
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from freshet.entry_points import loaded

# -- values ------------------------------------------------------------------

_ENDPOINT = re.compile(r"(?P<address>\[[0-9a-fA-F:.]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})")


def _number(value: object) -> object:
    if isinstance(value, bool):
        # pydantic reports ValueError only.
        raise ValueError("input should be a number, not true or false")  # noqa: TRY004
    return value


def _from_text(value: object) -> object:
    """Parse text of a list or table (environment, command line) as TOML."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError('input should be written as in TOML: ["a", "b"] or {a = "b"}') from error


def endpoint(value: str) -> tuple[str, int]:
    """Return the address and port of ``ADDRESS:PORT``; an IPv6 address is in brackets."""
    found = _ENDPOINT.fullmatch(value)
    if found is None or int(found["port"]) > 65_535:
        raise ValueError("input should be ADDRESS:PORT, such as 127.0.0.1:9464 or [::1]:9464")
    name = found["address"].removeprefix("[").removesuffix("]")
    return str(ip_address("127.0.0.1" if name == "localhost" else name)), int(found["port"])


def _time_zone(value: str) -> str:
    if value == "UTC":  # known without the time zone database, which some machines lack
        return value
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("input should be a time zone such as UTC or Europe/Berlin") from error
    return value


def shown(value: SecretStr) -> str:
    """Return the displayable part of a secret: its source, or else as :func:`masked`."""
    text = value.get_secret_value()
    return text if text.startswith(("env:", "file:")) else masked(text)


def masked(text: str) -> str:
    """Return the displayable part of a secret: the host of a web URL, else hardly more.

    >>> masked("https://somebody:secret@hooks.example.org/services/T0/B0?token=1")
    'https://hooks.example.org/…'
    """
    scheme, colon, rest = text.partition("://")
    if scheme.lower() not in {"http", "https"}:
        return f"{scheme}://…" if colon else "…"
    return f"{scheme}://{re.split('[/?#]', rest)[0].rpartition('@')[2]}/…"


Number = BeforeValidator(_number)
Text = BeforeValidator(_from_text)

#: More than anyone needs, and still an SQLite integer after an addition.
_MOST = 10**15
Count = Annotated[int, Number, Field(ge=0, le=_MOST)]
Positive = Annotated[int, Number, Field(ge=1, le=_MOST)]
Seconds = Annotated[float, Number, Field(ge=0)]
PositiveSeconds = Annotated[float, Number, Field(gt=0)]
Weight = Annotated[float, Number, Field(gt=0)]
Factor = Annotated[float, Number, Field(ge=1)]
Share = Annotated[float, Number, Field(ge=0, le=1)]
Endings = Annotated[tuple[Annotated[str, Field(pattern=r"^[a-z0-9]+$")], ...], Text]
Groups = Annotated[Mapping[str, Annotated[tuple[str, ...], Field(min_length=1)]], Text]
Networks = Annotated[
    tuple[
        Annotated[IPv4Network | IPv6Network, BeforeValidator(lambda value: ip_network(str(value)))],
        ...,
    ],
    Text,
]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
#: A secret, displayed masked; ``env:NAME`` and ``file:PATH`` name its source.
Secret = Annotated[
    SecretStr, Field(min_length=1), PlainSerializer(shown, return_type=str, when_used="json")
]
Addresses = Annotated[
    Mapping[str, Annotated[str, AfterValidator(lambda value: str(ip_address(value)))]], Text
]


def _at_least(name: str) -> AfterValidator:
    """Return a validator that refuses a value below that of an earlier key in the group."""

    def check_it(value: float, info: ValidationInfo) -> float:
        least = info.data.get(name)
        if least is not None and value < least:
            raise ValueError(f"input should be at least {name}, which is {least:g}")
        return value

    return AfterValidator(check_it)


def _zero_or(least: float, zero: str, unit: str = "") -> AfterValidator:
    """Return a validator that refuses a value between 0, which means ``zero``, and the least."""

    def check_it(value: float) -> float:
        if 0 < value < least:
            raise ValueError(f"input should be 0 ({zero}), or at least {least}{unit}")
        return value

    return AfterValidator(check_it)


def like(pattern: str, form: str) -> AfterValidator:
    """Return a validator that refuses text without this pattern; ``form`` describes it."""

    def check_it(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"input should {form}")
        return value

    return AfterValidator(check_it)


class SettingsGroup(BaseModel):
    """A table of the configuration file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    #: Whether a running daemon applies a new value.
    RELOADED: ClassVar[bool] = False
    #: Keys that hold a list of tables, with their type; errors do not quote their values.
    LISTS: ClassVar[Mapping[str, type["SettingsGroup"]]] = {}

    def at(self, url: str) -> Iterable[tuple[str, object]]:
        """Return the keys that affect the page at a URL, each with its value there."""
        return ()

    def silent(self) -> Self:
        """Return the settings without any alerts."""
        return self


G = TypeVar("G", bound=SettingsGroup)


# -- outward -----------------------------------------------------------------


class Operation(SettingsGroup):
    """Listening and logs. ``listen`` is ADDRESS:PORT, or empty for none; ``token`` likewise."""

    token: Annotated[
        SecretStr,
        PlainSerializer(lambda it: shown(it) if it else "", return_type=str, when_used="json"),
    ]
    listen: str
    host_names: Annotated[tuple[Annotated[str, Field(pattern=r"^[a-zA-Z0-9.-]+$")], ...], Text]
    trusted_proxies: Networks
    log_format: Literal["auto", "console", "json"]

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """The address and port to listen on, or None."""
        return endpoint(self.listen) if self.listen else None

    @check("listen")
    @classmethod
    def _is_an_endpoint(cls, value: str, info: ValidationInfo) -> str:
        if not value:
            return value
        address, _ = endpoint(value)
        if not ip_address(address).is_loopback and not info.data.get("token"):
            raise ValueError(
                "input should be a loopback address such as 127.0.0.1:9464; for others set "
                "operation.token as well: clients must send it (docs/guide/operate.md)"
            )
        return value


#: Both are in a comment of the user agent, which allows no parentheses and no white space.
_CONTACT = re.compile(r"https?://[A-Za-z0-9\[][!-'*-~]*|mailto:[!-'*-?A-~]+@[!-'*-?A-~]+")
_MAIL = re.compile(r"[A-Za-z0-9.!$&'*+=_~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def contact(value: str) -> str:
    """Return a contact as a URL: a mail address becomes ``mailto:``; "" stays."""
    if _MAIL.fullmatch(value):
        return f"mailto:{value}"
    if value and not _CONTACT.fullmatch(value):
        raise ValueError(
            "input should be a mail address (you@example.org) or a URL: https://…, http://… or "
            "mailto:…"
        )
    return value


_PRODUCT = like(r"[A-Za-z_-]+", "consist of letters, _ and - (RFC 9309, section 2.2.1)")
_HEADER_TEXT = like(r"[ -~]*", "be printable ASCII: it is sent in a header")

#: A capture may be withdrawn; then the previous one counts again.
LEAST_SKETCHES = 3
#: Days during which alerts on a corrected observation are withdrawn.
LEAST_ALERT_DAYS = 30


_ScopeKind = Literal["host", "domain", "prefix", "list"]


#: Uses of pages (:mod:`freshet.crawler.robots.preferences`).
Purposes = Annotated[
    tuple[Literal["search", "ai-input", "ai-train", "tdm", "images-ai", "snippet", "archive"], ...],
    Text,
]


class Crawl(SettingsGroup):
    """One run: the crawler's identity, extent and end."""

    product: Annotated[str, _PRODUCT]
    contact: Annotated[str, AfterValidator(contact)]
    scope: _ScopeKind
    max_pages: Count
    max_depth: Count
    follow_nofollow: bool
    time_limit_s: Seconds
    patience_s: Seconds
    max_redirects: Annotated[int, Number, Field(ge=0, le=50)]
    concurrent_requests: Annotated[int, Number, Field(ge=1, le=10_000)]
    attempts: Positive
    permanent_recheck_days: Seconds
    purpose: Purposes
    skip_forbidden: bool


class Politeness(SettingsGroup):
    """Politeness towards servers."""

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


class Fetch(SettingsGroup):
    """The limits of one request."""

    connect_timeout_s: PositiveSeconds
    headers_timeout_s: PositiveSeconds
    body_timeout_s: PositiveSeconds
    min_rate_bytes_per_s: Count
    rate_window_s: PositiveSeconds
    max_header_bytes: Positive
    max_body_bytes: Positive
    accept_language: Annotated[str, _HEADER_TEXT]
    markdown: bool
    excluded_extensions: Endings


RenderMode = Literal["never", "when-needed", "always"]
RenderWait = Annotated[float, Number, Field(gt=0)] | Annotated[str, Field(min_length=1)]


class _NetworkSettings(SettingsGroup):
    """Addresses that may be requested, and name resolution."""

    allow_private_addresses: bool
    allow_networks: Networks
    resolve: Addresses


class Robots(SettingsGroup):
    """robots.txt; the limits are those of RFC 9309."""

    max_age_s: Annotated[float, Number, Field(ge=0, le=86_400)]
    stale_max_age_s: Seconds
    max_bytes: Annotated[int, Number, Field(ge=512_000, le=_MOST)]
    max_redirects: Annotated[int, Number, Field(ge=0, le=50)]
    sitemaps: bool


class Sitemaps(SettingsGroup):
    """Limits of a sitemap."""

    max_bytes: Positive
    max_entries: Positive


class _SignalSettings(SettingsGroup):
    """Sources of change signals."""

    max_feeds: Count
    well_known: bool


class Traps(SettingsGroup):
    """Limits for URLs that a site generates without end."""

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
    min_copy_pairs: Count


#: Kinds of difference that count as a change.
Counts = Annotated[
    tuple[Literal["words", "links", "images", "state", "order", "layout"], ...],
    Text,
    Field(min_length=1),
]


class _ChangeSettings(SettingsGroup):
    """Significance of changes in a page's main text."""

    significant_below: Share
    counts: Counts
    probe: bool


class Ephemeral(SettingsGroup):
    """Competition of ephemeral sources with pages that are kept fresh."""

    RELOADED: ClassVar = True

    recognise: bool
    half_life_hours: Weight
    item_value: Weight
    cost: Literal["request", "delay"]


class DaemonSettings(SettingsGroup):
    """Budget and policy of a daemon; the command line has options for these as well."""

    RELOADED: ClassVar = True

    budget: str
    policy: str
    importance: Literal["list", "constant", "depth", "pagerank", "opened"]
    audit_share: Share
    new_page_value: Weight
    discovery: Literal["areas", "greedy", "cov_win", "od_win", "cliq_win"]
    min_discovery: Share
    max_discovery: Annotated[Share, _at_least("min_discovery")]


class Parse(SettingsGroup):
    """Limits of the work per page."""

    time_limit_s: PositiveSeconds
    max_links: Positive


class StoreSettings(SettingsGroup):
    """The database: retention and writing."""

    bodies_per_page: Positive
    body_age_days: Seconds
    gone_body_age_days: Annotated[Seconds, _zero_or(1, "kept for ever", " day")]
    sketches_per_page: Annotated[Count, _zero_or(LEAST_SKETCHES, "all")]
    failure_age_days: Annotated[Seconds, _zero_or(1, "kept for ever", " day")]
    link_age_days: Annotated[Seconds, _zero_or(1, "kept for ever", " day")]
    alert_age_days: Annotated[Seconds, _zero_or(LEAST_ALERT_DAYS, "kept for ever", " days")]
    deletion_age_days: Annotated[Seconds, _zero_or(30, "kept for ever", " days")]
    batch: Annotated[int, Number, Field(ge=1, le=10_000)]


class _ArchiveSettings(SettingsGroup):
    """WARC files of all requests and responses; an empty ``dir`` means none."""

    dir: str
    requisites: bool
    requisites_per_page: Annotated[int, Number, Field(ge=1, le=1_000)]
    requisites_share: Share
    requisites_age_days: Seconds
    max_file_bytes: Annotated[int, Number, Field(ge=1_000_000, le=_MOST)]


_SITE = like(
    r"(https?://)?(\*\.)?([^\s/*:]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/\S*)?|/\S*",
    "be a host (example.org), a domain (*.example.org), the beginning of a URL "
    "(example.org/news/*), or a path on any host (/tag/*)",
)
#: The name of a request header (RFC 9110, section 5.6.2).
_FIELD = like(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", "be the name of a header, such as X-Api-Key")
Headers = Annotated[Mapping[Annotated[str, _FIELD], Secret], Text]
_HOURS = like(
    r"([01]?\d|2[0-3])(:[0-5]\d)?-([01]?\d|2[0-4])(:[0-5]\d)?", "be hours, such as 22:00-06:00"
)
#: Keys of [[sites]] about whole hosts.
_OF_HOSTS = (
    "delay_s", "connections_per_host", "active_hours", "zone", "user_agent_suffix", "headers",
    "cookies", "user", "password", "bearer", "proxy", "ca_file", "client_certificate", "client_key",
    "sign",
)  # fmt: skip
Selectors = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Text]

_INTERVAL = re.compile(
    r"(?i)([0-9]+(?:\.[0-9]+)?) *"
    r"(?:(m|min|minute|minutes)|(h|hour|hours)|(d|day|days)|(w|week|weeks))"
)
_UNIT_DAYS = (1 / 1_440, 1 / 24, 1.0, 7.0)
#: Visits are planned to the minute; more than ten years is not useful.
_LEAST_DAYS, _MOST_DAYS = 1 / 1_440, 3_650.0


def interval_days(value: object) -> float:
    """Return the days of an interval.

    >>> interval_days("36 hours"), interval_days("2d")
    (1.5, 2.0)
    """
    found = _INTERVAL.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(
            'input should be a number with its unit, such as "30 minutes", "1 hour" or "2 days"'
        )
    number, *units = found.groups()
    days = float(number) * next(d for d, unit in zip(_UNIT_DAYS, units, strict=True) if unit)
    if not _LEAST_DAYS <= days <= _MOST_DAYS:
        raise ValueError("input should be at least 1 minute, and at most 3650 days")
    return days


def _interval(value: object) -> object:
    interval_days(value)
    return value


class SiteSettings(SettingsGroup):
    """``[[sites]]``: settings for the pages that match; None is not set."""

    match: Annotated[str, _SITE]
    # Keys of whole hosts.
    delay_s: Seconds | None = None
    connections_per_host: Positive | None = None
    active_hours: Annotated[str, _HOURS] | None = None
    zone: TimeZone | None = None
    user_agent_suffix: Annotated[str, _HEADER_TEXT] | None = None
    headers: Headers | None = None
    cookies: Path | None = None
    user: Annotated[str, _HEADER_TEXT] | None = None
    password: Secret | None = None
    bearer: Secret | None = None
    proxy: Secret | None = None
    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    sign: bool | None = None
    # Keys of pages.
    scope: _ScopeKind | None = None
    max_depth: Count | None = None
    max_pages: Count | None = None
    include: Selectors | None = None
    ignore: Selectors | None = None
    counts: Counts | None = None
    never: bool | None = None
    render: RenderMode | None = None
    render_wait: RenderWait | None = None
    importance: Annotated[float, Number, Field(ge=0)] | None = None
    every: Annotated[str, BeforeValidator(_interval)] | None = None
    # ``every``, if set, sets both.
    least_days: Annotated[Seconds | None, Field(validate_default=True)] = None
    most_days: Annotated[
        Annotated[PositiveSeconds, _at_least("least_days")] | None, Field(validate_default=True)
    ] = None
    ephemeral: bool | None = None
    half_life_hours: Weight | None = None
    signals: Literal["learnt", "complete"] | None = None

    @check(*_OF_HOSTS)
    @classmethod
    def _is_of_a_host(cls, value: object, info: ValidationInfo) -> object:
        if value is not None and "/" in info.data.get("match", "").rpartition("://")[2]:
            raise ValueError(
                "input should be left out if match has a path: it applies to whole hosts"
            )
        return value

    @check("least_days", "most_days")
    @classmethod
    def _is_of_the_interval(cls, value: float | None, info: ValidationInfo) -> float | None:
        if (every := info.data.get("every")) is None:
            return value
        days = interval_days(every)
        if value not in (None, days):
            raise ValueError("input should be left out if every is given")
        return days

    @check("half_life_hours")
    @classmethod
    def _is_of_a_source(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("ephemeral") is False:
            raise ValueError("input should be left out if ephemeral is false")
        return value


class Settings(BaseSettings):
    """All settings of the core; the groups are in the order in which a page passes them.

    The settings of a run are of a subclass with the groups of extensions: :func:`settings_model`.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="FRESHET_",
        env_nested_delimiter="__",
        env_nested_max_split=1,
        # The fields parse text themselves, in TOML.
        enable_decoding=False,
    )

    # A run does not record it, because a store may be moved.
    db: Annotated[Path, Field(exclude=True)]
    sites: Annotated[tuple[SiteSettings, ...], Text]
    crawl: Crawl
    politeness: Politeness
    fetch: Fetch
    network: _NetworkSettings
    robots: Robots
    sitemaps: Sitemaps
    signals: _SignalSettings
    traps: Traps
    change: _ChangeSettings
    daemon: DaemonSettings
    ephemeral: Ephemeral
    parse: Parse
    store: StoreSettings
    archive: _ArchiveSettings
    operation: Operation

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_args: PydanticBaseSettingsSource,
        **_sources: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use arguments only: ``freshet.config.loading`` merges the sources.

        It records the origin of each value, which the library does not.
        """
        return (init_settings,)

    def group(self, kind: type[G]) -> G:
        """Return the group of this type, which an extension adds (entry points ``GROUPS``)."""
        return next(value for _, value in self if isinstance(value, kind))

    def groups(self) -> dict[str, SettingsGroup]:
        """Return all groups by name."""
        return {name: value for name, value in self if isinstance(value, SettingsGroup)}

    def silent(self) -> Self:
        """Return the settings without any alerts."""
        return self.model_copy(update={name: it.silent() for name, it in self.groups().items()})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the groups only: the reader creates the class again."""
        return _of_groups, (dict(self),)


#: Entry points that add groups: a :class:`SettingsGroup` by the name of its table. The folder of
#: its module has the defaults in ``defaults.toml``.
GROUPS: Final = "freshet.settings"


@cache
def settings_model() -> type[Settings]:
    """Return the settings class with the groups of all extensions."""
    added: dict[str, Any] = {name: (kind, ...) for name, kind in loaded(GROUPS).items()}
    return create_model("Settings", __base__=Settings, __module__=__name__, **added)


def _of_groups(groups: dict[str, object]) -> Settings:
    return settings_model().model_validate(groups)
