"""The settings ``[browser]``; ``defaults.toml`` beside this module has their defaults."""

from typing import Annotated

from pydantic import Field

from freshet.config.settings import (
    Count,
    Number,
    Positive,
    PositiveSeconds,
    RenderMode,
    RenderWait,
    SettingsGroup,
    Text,
)


class BrowserSettings(SettingsGroup):
    """``[browser]``: pages that a browser renders."""

    executable: str
    render: RenderMode
    wait: RenderWait
    pages: Annotated[int, Number, Field(ge=1, le=64)]
    time_limit_s: PositiveSeconds
    max_requests: Count
    max_bytes: Positive
    memory_bytes: Annotated[int, Number, Field(ge=256 * 2**20, le=10**15)]
    kinds: Annotated[tuple[str, ...], Text]
    blocked_hosts: Annotated[tuple[str, ...], Text]
