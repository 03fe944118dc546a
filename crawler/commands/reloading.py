"""What a running daemon takes over of settings that are read again."""

from __future__ import annotations

from typing import Final

from freshet.config.settings import Settings

#: Who shares a delay decides which lanes there are: not to be changed while they are used.
_OF_LANES: Final = ("key", "groups")


def taken_over(running: Settings, asked: Settings) -> Settings:
    """The settings in force from now on.

    Of ``daemon``, ``ephemeral``, ``politeness`` and ``alerts`` as asked, of the rest as they were.
    """
    lanes = {name: getattr(running.politeness, name) for name in _OF_LANES}
    politeness = asked.politeness.model_copy(update=lanes)
    taken = {
        "daemon": asked.daemon, "ephemeral": asked.ephemeral, "politeness": politeness,
        "alerts": asked.alerts,
    }  # fmt: skip
    return running.model_copy(update=taken)


def waiting_for_a_restart(running: Settings, asked: Settings) -> str:
    """What was asked for and is not in force, as the end of a sentence; "" if nothing is."""
    now, then = running.model_dump(), asked.model_dump()
    names = [
        f"{group}.{key}"
        for group, values in then.items()
        for key, value in values.items()
        if value != now[group][key]
    ]
    return f"; {', '.join(names)}: in force after a restart only" if names else ""
