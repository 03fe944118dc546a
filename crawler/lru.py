"""A bounded mapping that drops the least recently used entry."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """A mapping of at most ``room`` entries; writing one more drops the least recently used one.

    Writing an entry and :meth:`use` count as a use, ``get`` and ``[]`` do not.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._room:
            self.popitem(last=False)

    def use(self, key: K) -> V | None:
        """Return the value of a key, or None, and count a use."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)
