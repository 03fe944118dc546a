"""Where a value stands on an axis, and which values are named there.

Ticks are 1, 2 or 5 times a power of ten. Scales take whatever they are asked for: a range of zero
width, or none at all, becomes one that can be drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Final, Protocol

_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
#: Of a step: what rounding may put a tick beside the end of the range.
_ROUNDING: Final = 1e-9


class Scale(Protocol):
    """From values to shares of an axis."""

    def __call__(self, value: float) -> float:
        """0 at the low end of the range, 1 at the high end; NaN for what has no place."""
        ...

    def ticks(self, most: int) -> list[float]:
        """Round values within the range, ascending, at most ``most`` (at least 2)."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Equal steps are equally long; ``low`` < ``high``. Make one with :meth:`around`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], *, zero: bool = True) -> Linear:
        """A scale that holds these values, as far as they are finite, and 0 if wanted."""
        low, high = _ends(values)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if not high > low:
            room = abs(high) / 2 or 1.0
            return cls(low if zero and low == 0 else low - room, high + room)
        return cls(low, high)

    def __call__(self, value: float) -> float:
        """The share of the way from ``low`` to ``high``."""
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self, most: int) -> list[float]:
        """Multiples of a round step."""
        step = round_step((self.high / 2 - self.low / 2) / most * 2)
        while True:
            first, last = ceil(self.low / step - _ROUNDING), floor(self.high / step + _ROUNDING)
            if last - first < most:
                return [_round(number * step, step) for number in range(first, last + 1)]
            step = round_step(step * 1.5)


@dataclass(frozen=True, slots=True)
class Log:
    """Equal ratios are equally long; 0 < ``low`` < ``high``. Make one with :meth:`around`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Log:
        """A scale that holds these values, as far as they are finite and above 0."""
        low, high = _ends(value for value in values if value > 0)
        if not low > 0:
            return cls(1.0, 10.0)
        return cls(low, high) if high > low else cls(low / 2, high * 2)

    def __call__(self, value: float) -> float:
        """The share of the ratio between the ends."""
        if not value > 0:
            return float("nan")
        return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))

    def ticks(self, most: int) -> list[float]:
        """Powers of ten, some of them where there are many, and 2 and 5 times them if few."""
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = self._round_values(factors)
            if 2 <= len(found) <= most:
                return found
        powers = self._round_values((1,))
        return powers[:: ceil(len(powers) / most)] if len(powers) > most else self._ends_only()

    def _round_values(self, factors: Sequence[int]) -> list[float]:
        """All powers of ten within the range, times each of these factors."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        values = (float(f"{factor}e{power}") for power in powers for factor in factors)
        least, most = self.low * (1 - _ROUNDING), self.high * (1 + _ROUNDING)
        return [value for value in values if least <= value <= most]

    def _ends_only(self) -> list[float]:
        """Where no round value lies in the range, its ends do."""
        return [float(f"{self.low:.3g}"), float(f"{self.high:.3g}")]


def scale_of_budgets(values: Sequence[float]) -> Scale:
    """By ratios where values above 0 differ by more than a factor of five."""
    low, high = _ends(values)
    return Log.around(values) if low > 0 and high > 5 * low else Linear.around(values, zero=False)


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least ``least`` (above 0)."""
    power = floor(log10(least))
    found = (step * float(f"1e{power}") for step in _STEPS)
    return next(each for each in found if each >= least * (1 - _ROUNDING))


def _round(value: float, step: float) -> float:
    """A multiple of a step without what floating point added to it."""
    return round(value, max(-floor(log10(step)), 0)) + 0.0


def _ends(values: Iterable[float]) -> tuple[float, float]:
    told = [float(value) for value in values if isfinite(value)]
    return (min(told), max(told)) if told else (0.0, 0.0)
