"""What settings are made of: types with their ranges, and how secrets are shown."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
)

_ENDPOINT = re.compile(r"(?P<address>\[[0-9a-fA-F:.]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})")


def _number(value: object) -> object:
    if isinstance(value, bool):
        # pydantic reports a ValueError only.
        raise ValueError("input should be a number, not true or false")  # noqa: TRY004
    return value


def _from_text(value: object) -> object:
    """Lists and tables in a text (environment, command line) are written as in TOML."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError('input should be written as in TOML: ["a", "b"] or {a = "b"}') from error


def _address(value: str) -> str:
    return str(ip_address(value))


def _network(value: object) -> IPv4Network | IPv6Network:
    return ip_network(str(value))


def endpoint(value: str) -> tuple[str, int]:
    """Address and port of ``ADDRESS:PORT``; an IPv6 address stands in brackets."""
    found = _ENDPOINT.fullmatch(value)
    if found is None or int(found["port"]) > 65_535:
        raise ValueError("input should be ADDRESS:PORT, such as 127.0.0.1:9464 or [::1]:9464")
    name = found["address"].removeprefix("[").removesuffix("]")
    return str(ip_address("127.0.0.1" if name == "localhost" else name)), int(found["port"])


def _time_zone(value: str) -> str:
    if value == "UTC":  # known without the data base of time zones, which not all machines have
        return value
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("input should be a time zone such as UTC or Europe/Berlin") from error
    return value


def shown(value: SecretStr) -> str:
    """What may be shown of a secret: where it stands, or else as :func:`masked`."""
    text = value.get_secret_value()
    return text if text.startswith(("env:", "file:")) else masked(text)


def masked(text: str) -> str:
    """What may be shown of a secret: the host where it is a URL of the web, hardly more if not.

    >>> masked("https://somebody:secret@hooks.example.org/services/T0/B0?token=1")
    'https://hooks.example.org/…'
    """
    scheme, colon, rest = text.partition("://")
    if scheme.lower() not in {"http", "https"}:
        return f"{scheme}://…" if colon else "…"
    return f"{scheme}://{re.split('[/?#]', rest)[0].rpartition('@')[2]}/…"


Number = BeforeValidator(_number)
Text = BeforeValidator(_from_text)

Count = Annotated[int, Number, Field(ge=0)]
Positive = Annotated[int, Number, Field(ge=1)]
Seconds = Annotated[float, Number, Field(ge=0)]
PositiveSeconds = Annotated[float, Number, Field(gt=0)]
Weight = Annotated[float, Number, Field(gt=0)]
Factor = Annotated[float, Number, Field(ge=1)]
Share = Annotated[float, Number, Field(ge=0, le=1)]
Endings = Annotated[tuple[Annotated[str, Field(pattern=r"^[a-z0-9]+$")], ...], Text]
Groups = Annotated[Mapping[str, Annotated[tuple[str, ...], Field(min_length=1)]], Text]
Networks = Annotated[
    tuple[Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)], ...], Text
]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
#: A text that is shown masked; ``env:NAME`` and ``file:PATH`` say where it stands.
Secret = Annotated[
    SecretStr, Field(min_length=1), PlainSerializer(shown, return_type=str, when_used="json")
]
Addresses = Annotated[Mapping[str, Annotated[str, AfterValidator(_address)]], Text]


class Group(BaseModel):
    """A table of the configuration file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
