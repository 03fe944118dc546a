"""Options as people write them, ``NAME=VALUE,NAME=VALUE``, for what is made from keywords."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str


def given(make: Callable[..., Any], text: str) -> dict[str, Value]:
    """The options in ``text`` as keyword arguments of ``make``, typed as its defaults are.

    Raises:
        ValueError: if a name or a value is not accepted; names are those of the arguments.

    >>> def make(share: float = 0.5, crawling: str = "poisson") -> None: ...
    >>> given(make, "share=0.25,crawling=periodic")
    {'share': 0.25, 'crawling': 'periodic'}
    """
    return dict(_option(make, part) for part in text.split(",") if part)


def _option(make: Callable[..., Any], part: str) -> tuple[str, Value]:
    key, equals, text = part.partition("=")
    accepted = inspect.signature(make).parameters
    if key not in accepted or not equals:
        known = ", ".join(f"{option}=…" for option in accepted) or "none"
        raise ValueError(f"option {part!r} is not known; accepted are {known}")
    return key, _value(key, text, accepted[key].default)


def _value(key: str, text: str, default: object) -> Value:
    """The text as a value of the default's type."""
    if isinstance(default, bool):
        if text not in {"true", "false"}:
            raise ValueError(f"{key} is {text!r}; accepted are true and false")
        return text == "true"
    if not isinstance(default, int | float):
        return text
    try:
        return type(default)(text)
    except ValueError as error:
        raise ValueError(f"{key} is {text!r}; accepted is a number") from error
