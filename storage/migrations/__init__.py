"""The schema's history: numbered SQL files, each applied once, in one transaction.

The first one makes the schema of 0.1.0. Those of the time before are not kept, nor are their stores
read; from 0.1.0 on each change of the schema is a further file.
"""

from functools import cache
from importlib import resources


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Return number, name and SQL of all steps in order, from ``NNNN_name.sql`` beside this module.

    The number becomes ``PRAGMA user_version``.
    """
    files = [f for f in resources.files(__name__).iterdir() if f.name.endswith(".sql")]
    return tuple(
        (int(f.name[:4]), f.name[5:-4], f.read_text("utf-8"))
        for f in sorted(files, key=lambda f: f.name)
    )


def oldest() -> int:
    """Return the number of the oldest schema that can be migrated."""
    return migrations()[0][0]


def newest() -> int:
    """Return the number of the last migration, which is that of the schema."""
    return migrations()[-1][0]
