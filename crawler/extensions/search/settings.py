"""The settings ``[search]``; ``defaults.toml`` beside this module has their defaults."""

from typing import Literal

from freshet.config.settings import SettingsGroup


class SearchSettings(SettingsGroup):
    """The search index of the store."""

    index: Literal["on", "off", "keep"]
    queries: str
    remember: bool
