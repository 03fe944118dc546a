"""The settings ``[presentation]``; ``defaults.toml`` beside this module has their defaults."""

from typing import Annotated

from pydantic import BeforeValidator

from freshet.config.settings import SettingsGroup, like

_PROMOTION = like(r"off|auto|0?\.\d*[1-9]\d*|1(\.0*)?", "be off, auto, or a probability above 0")


class PresentationSettings(SettingsGroup):
    """Lists of pages that people see: the record of what they open, and promotion."""

    record: bool
    links: bool
    promotion: Annotated[
        str, BeforeValidator(lambda it: f"{it}" if type(it) in {int, float} else it), _PROMOTION
    ]
