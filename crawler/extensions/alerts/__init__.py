"""Alerts: rules, messages, and their delivery by signed webhooks and other services."""

from collections.abc import Mapping, Sequence
from typing import Final

STEPS: Final[Sequence[str]] = ("schema/0001_alerts.sql",)
DATED: Final[Mapping[str, Sequence[str]]] = {
    "alert": ("at",),
    "alert_message": ("since", "next_at"),
}
