"""Push notifications to a daemon: WebSub and IndexNow."""

from collections.abc import Mapping, Sequence
from typing import Final

STEPS: Final[Sequence[str]] = ("schema/0001_subscription.sql",)
DATED: Final[Mapping[str, Sequence[str]]] = {"subscription": ("next_at",)}
