"""Integer codes of hosts, counted from 0 in the order in which the hosts were added."""

from collections.abc import Sequence

import numpy as np

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.queue import pages
from freshet.storage.entries import Host


class HostCodes:
    """The codes that the page table and the ranker use for hosts.

    Attributes:
        ids: the id of each host in the store, by its code.
        codes: the code of each host, by its id.
        origins: by id.
        costs: the cost of a visit at each host; new hosts may be missing.
    """

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.codes: dict[int, int] = {}
        self.origins: dict[int, str] = {}
        self.costs: Floats = np.ones(0)
        self._places: list[int] = []
        self._new: list[Host] = []

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, hosts: Sequence[Host]) -> None:
        """Append hosts in this order."""
        for host in hosts:
            self.codes[host.host_id] = len(self.ids)
            self.ids.append(host.host_id)
            self.origins[host.host_id] = host.origin
            self._places.append(pages.place(host.origin))
            self._new.append(host)

    def take_new(self) -> Sequence[Host]:
        """Return the hosts that were added since the last call."""
        new, self._new = self._new, []
        return new

    @property
    def places(self) -> Ints:
        """Return (H,), the :func:`~scheduler.queue.pages.place` of each host."""
        return np.array(self._places)

    def cost(self) -> Floats:
        """Return (H,), the cost of a visit at each host, 1 if it is not known yet."""
        return np.append(self.costs, np.ones(len(self.ids) - len(self.costs)))
