"""The settings ``[alerts]``; ``defaults.toml`` beside this module has their defaults."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic import field_validator as check

from freshet.config.settings import (
    Count,
    Factor,
    Number,
    PositiveSeconds,
    Seconds,
    Secret,
    SettingsGroup,
    Share,
    Text,
    TimeZone,
    like,
)
from freshet.config.sites import pattern

AlertKinds = Annotated[
    tuple[
        Literal[
            "changed",
            "new",
            "gone",
            "rejected",
            "refreshed",
            "words",
            "links",
            "images",
            "state",
            "order",
            "layout",
        ],
        ...,
    ],
    Text,
    Field(min_length=1),
]
AlertMode = Literal["immediate", "hourly", "daily"]
Hour = Annotated[int, Number, Field(ge=0, le=23)]


_Words = Annotated[str, Field(max_length=200), like(r"(?s).*\S.*", "have more than white space")]
#: A single value may be without brackets.
_Several = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
Phrases = Annotated[tuple[_Words, ...], _Several, Field(min_length=1)]


class AlertRuleSettings(SettingsGroup):
    """One alert rule: which pages, which receiver. ``None`` inherits from ``[alerts]``.

    Any of ``appears``, ``vanishes``, ``above`` and ``below`` suffices; without them every change.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    match: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], _Several, Field(min_length=1)]
    url: Secret
    secret: Secret | None = None
    kinds: AlertKinds | None = None
    mode: AlertMode | None = None
    hour: Hour | None = None
    zone: TimeZone | None = None
    most: Count | None = None
    appears: Phrases | None = None
    vanishes: Phrases | None = None
    above: Annotated[float, Number] | None = None
    below: Annotated[float, Number] | None = None
    number: _Words | None = None
    within: _Words | None = None

    @check("number", "within")
    @classmethod
    def _is_of_a_condition(cls, value: str | None, info: ValidationInfo) -> str | None:
        needed: tuple[str, ...] = ("above", "below")
        if info.field_name == "within":
            needed = ("appears", "vanishes", *needed)
        elif value is not None and value.count("*") > 1:
            raise ValueError("input should have one *, which stands for the number")
        if value is not None and all(info.data.get(name) is None for name in needed):
            raise ValueError(f"input should come with {' or '.join(needed)}")
        return value


class Alerts(SettingsGroup):
    """``[alerts]``: rules, rhythm, and retries."""

    RELOADED: ClassVar = True
    LISTS: ClassVar = {"rules": AlertRuleSettings}

    kinds: AlertKinds
    mode: AlertMode
    hour: Hour
    zone: TimeZone
    most: Count
    timeout_s: PositiveSeconds
    back_off_initial_s: PositiveSeconds
    back_off_factor: Factor
    back_off_max_s: PositiveSeconds
    back_off_jitter: Share
    give_up_s: Seconds
    rules: Annotated[tuple[AlertRuleSettings, ...], Text]

    @check("rules")
    @classmethod
    def _has_names_of_its_own(
        cls, value: tuple[AlertRuleSettings, ...]
    ) -> tuple[AlertRuleSettings, ...]:
        names = [rule.name for rule in value]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"input should have distinct rule names; {twice} occurs twice")
        return value

    def at(self, url: str) -> Iterator[tuple[str, object]]:
        """Return the names of the rules that ask for the page at a URL."""
        rules = self.rules
        named = [it.name for it in rules if any(pattern(m).fullmatch(url) for m in it.match)]
        yield "rules", named

    def silent(self) -> "Alerts":
        """Return these settings without rules."""
        return self.model_copy(update={"rules": ()})
