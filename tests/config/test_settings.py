"""Settings: the model and defaults.toml agree, and values out of range are refused."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from freshet.config.loading import defaults_text
from freshet.config.settings import SiteSettings, settings_model

TEXT = defaults_text()
Settings = settings_model()


def modelled() -> Iterator[str]:
    for group, field in Settings.model_fields.items():
        of: Any = field.annotation
        if get_origin(of) is None and issubclass(of, BaseModel):
            yield from (f"{group}.{key}" for key in of.model_fields)
        else:
            yield group


def defaults(**changes: object) -> dict[str, Any]:
    tables = tomllib.loads(TEXT)
    for name, value in changes.items():
        group, key = name.split("__")
        tables[group][key] = value
    return tables


def test_defaults_and_model_have_the_same_keys_in_the_same_order() -> None:
    written = [
        f"{group}.{key}" if isinstance(table, dict) else group
        for group, table in defaults().items()
        for key in (table if isinstance(table, dict) else (group,))
    ]
    assert written == list(modelled())


def test_no_default_stands_in_python() -> None:
    for field in Settings.model_fields.values():
        assert field.is_required()
        of: Any = field.annotation
        groups = [of] if get_origin(of) is None and issubclass(of, BaseModel) else []
        assert all(key.is_required() for each in groups for key in each.model_fields.values())


def test_every_default_has_a_comment_right_above_it() -> None:
    lines = TEXT.splitlines()
    keys = [n for n, line in enumerate(lines) if re.match(r"\w+ = ", line)]
    assert len(keys) == len(list(modelled()))
    assert all(lines[n - 1].startswith("# ") for n in keys)


def test_the_defaults_are_valid() -> None:
    settings = Settings.model_validate(defaults())
    assert settings.politeness.delay_s == 1.0
    assert "png" in settings.fetch.excluded_extensions


def test_settings_cannot_be_changed() -> None:
    settings = Settings.model_validate(defaults())
    with pytest.raises(ValidationError, match="frozen"):
        settings.politeness.delay_s = 0.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [("crawl__product", "Fresh et"), ("crawl__product", ""), ("crawl__contact", "me@example"),
     ("crawl__contact", "https://example.org/\r\nX-Injected: 1"),
     ("crawl__contact", "https://example.org/(a"), ("crawl__scope", "web"),
     ("store__alert_age_days", 29), ("crawl__max_pages", -1), ("crawl__max_pages", True),
     ("crawl__max_pages", 10**19), ("store__bodies_per_page", 10**19),
     ("crawl__max_pages", 1.5), ("crawl__concurrent_requests", 0), ("politeness__key", "path"),
     ("politeness__groups", {"wiki": []}), ("politeness__delay_s", float("nan")),
     ("politeness__delay_s", float("inf")), ("politeness__back_off_jitter", 1.5),
     ("politeness__back_off_factor", 0.5), ("fetch__accept_language", "en\r\nX-Injected: 1"),
     ("fetch__excluded_extensions", [".png"]), ("network__allow_networks", ["10.0.0.1/8"]),
     ("network__allow_networks", ["intranet"]),
     ("network__resolve", {"example.org": "example.com"}), ("robots__max_bytes", 1000),
     ("robots__max_age_s", 86_401)],
)  # fmt: skip
def test_a_value_that_makes_no_sense_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match="1 validation error"):
        Settings.model_validate(defaults(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("crawl__max_pages", "12", 12),
        ("crawl__contact", "mailto:crawler@example.org", "mailto:crawler@example.org"),
        ("network__allow_private_addresses", "true", True),
        ("fetch__excluded_extensions", '["png"]', ("png",)),
        ("network__resolve", '{ "a.example" = "127.0.0.2" }', {"a.example": "127.0.0.2"}),
        ("politeness__groups", '{ wiki = ["*.example"] }', {"wiki": ("*.example",)}),
    ],
)
def test_a_text_is_read_as_the_file_would_write_it(name: str, value: str, meant: object) -> None:
    group, key = name.split("__")
    settings = Settings.model_validate(defaults(**{name: value}))
    assert getattr(getattr(settings, group), key) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("me@example.org", "mailto:me@example.org"),
        ("first.last+crawler@mail.example.co.uk", "mailto:first.last+crawler@mail.example.co.uk"),
        ("o'neil@xn--bcher-kva.example", "mailto:o'neil@xn--bcher-kva.example"),
        ("mailto:me@example.org", "mailto:me@example.org"),
        ("mailto:ops@intranet?subject=crawler", "mailto:ops@intranet?subject=crawler"),
        ("https://example.org/bot", "https://example.org/bot"),
        ("http://[2001:db8::1]:8080/bot", "http://[2001:db8::1]:8080/bot"),
        ("", ""),
    ],
)
def test_a_contact_is_a_mail_address_or_a_url(said: str, meant: str) -> None:
    assert Settings.model_validate(defaults(crawl__contact=said)).crawl.contact == meant


@pytest.mark.parametrize(
    "said",
    [
        "me", "me@", "@example.org", "me@example", "me @example.org", "me@example.org, a@b.example",
        "me@exam_ple.org", "example.org/bot", "https://", "https:///bot", "mailto:", "mailto:me",
        "mailto:@example.org", "ftp://example.org/", "https://example.org/(a)", "mé@example.org",
        "https://example.org/ a", "me@example.org\r\nX: 1", " ", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_what_nobody_can_be_reached_by_is_no_contact(said: str) -> None:
    with pytest.raises(ValidationError, match=r"should be a mail address .*or a URL: https://"):
        Settings.model_validate(defaults(crawl__contact=said))


def test_networks_of_both_families_are_read() -> None:
    networks = ["10.1.0.0/16", "fd00:1::/64"]
    settings = Settings.model_validate(defaults(network__allow_networks=networks))
    assert [str(network) for network in settings.network.allow_networks] == networks


@pytest.mark.parametrize(
    ("listen", "endpoint"),
    [("", None), ("127.0.0.1:9464", ("127.0.0.1", 9464)), ("127.8.9.1:0", ("127.8.9.1", 0)),
     ("localhost:80", ("127.0.0.1", 80)), ("[::1]:9464", ("::1", 9464))],
)  # fmt: skip
def test_a_daemon_may_listen_on_loopback(listen: str, endpoint: tuple[str, int] | None) -> None:
    found = Settings.model_validate(defaults(operation__listen=listen))
    assert found.operation.endpoint == endpoint


@pytest.mark.parametrize("listen", ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:80"])
def test_it_listens_elsewhere_only_with_a_token(listen: str) -> None:
    with pytest.raises(ValidationError, match=r"for others set operation\.token as well"):
        Settings.model_validate(defaults(operation__listen=listen))
    guarded = defaults(operation__listen=listen, operation__token="env:TOKEN")
    assert Settings.model_validate(guarded).operation.listen == listen


@pytest.mark.parametrize(
    "listen",
    ["9464", "127.0.0.1", "127.0.0.1:", "::1:80", "127.0.0.1:70000", "example.org:80", ":80"],
)
def test_an_endpoint_that_makes_no_sense_is_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match=r"operation\.listen"):
        Settings.model_validate(defaults(operation__listen=listen, operation__token="0" * 32))


def table(**keys: object) -> SiteSettings:
    return SiteSettings.model_validate({"match": "a.example", **keys})


@pytest.mark.parametrize(
    ("said", "hours"),
    [
        ("30 minutes", 0.5), ("1 hour", 1), ("2 days", 48), ("1h", 1), ("90 min", 1.5),
        ("5m", 1 / 12),
        ("1.5 h", 1.5), ("1 Week", 168), ("1 day", 24), ("36 hours", 36), ("2d", 48),
        ("1 minute", 1 / 60),
    ],
)  # fmt: skip
def test_every_sets_both_bounds_and_survives_being_written(said: str, hours: float) -> None:
    found = table(every=said)
    assert found.least_days == found.most_days == pytest.approx(hours / 24)
    assert SiteSettings.model_validate(found.model_dump(mode="json")) == found


@pytest.mark.parametrize(
    ("keys", "where", "said"),
    [
        *(({"every": wrong}, "every", "should be a number with its unit, such as \"30 minutes\"")
          for wrong in ("", "60", 3600, 1.5, True, "hourly", "1 month", "30 seconds", "-1 h",
                        "1 hour 3",
                        "one hour", "1e3 h", ["1 h"])),
        ({"every": "0 hours"}, "every", "at least 1 minute"),
        ({"every": "20000 days"}, "every", "at most 3650 days"),
        ({"every": "1 hour", "least_days": 1}, "least_days", "left out if every is given"),
        ({"every": "1 hour", "most_days": 2}, "most_days", "left out if every is given"),
    ],
)  # fmt: skip
def test_an_interval_that_makes_no_sense_is_refused(
    keys: dict[str, object], where: str, said: str
) -> None:
    with pytest.raises(ValidationError, match="1 validation error") as refused:
        table(**keys)
    (error,) = refused.value.errors()
    assert error["loc"] == (where,)
    assert said in error["msg"]
