"""The store: one SQLite file, its schema, and the nouns that cross packages."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

__all__ = ["value"]

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(*, frozen, slots):
        """Return a decorator as ``dataclass(frozen=True, slots=True)``.

        A frozen dataclass sets each field by a call of ``object.__setattr__``, which takes several
        times as long as an assignment: a page has 250 such fields. So nothing but the type checker
        refuses an assignment to a field of these.
        """
        return dataclass(slots=slots, unsafe_hash=frozen)
