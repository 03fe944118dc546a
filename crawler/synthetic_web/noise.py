"""What differs between two answers although nobody edited anything.

A :class:`Template` is a page with slots; filling it costs a few string joins, so that a
page is rendered once for each version and served thousands of times a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from itertools import groupby

from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.resources import Encoding


class Slot(Enum):
    """A place for noise."""

    RENDERED_AT = "rendered at"
    TOKEN = "token"
    NONCE = "nonce"
    SESSION = "session"
    VISITORS = "visitors"
    ADVERT = "advert"
    VARIANT = "variant"


def noise(
    seed: int,
    place: Place,
    serial: int,
    at: float,
    adverts: tuple[str, ...],
    variants: tuple[str, ...] = (),
) -> dict[Slot, str]:
    """The noise of the answer to a request that had so many before it at that place.

    ``variants`` are those of an A/B test, of which each answer draws one.
    """
    key = f"{seed}/{place.host}{place.target}/{serial}".encode()
    digest = blake2b(key, digest_size=32)
    drawn = digest.hexdigest()
    return {
        Slot.RENDERED_AT: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        Slot.TOKEN: drawn[:16],
        Slot.NONCE: drawn[16:28],
        Slot.SESSION: drawn[28:],
        Slot.VISITORS: str(1000 + 7 * serial + digest.digest()[0] % 7),
        Slot.ADVERT: adverts[digest.digest()[1] % len(adverts)] if adverts else "",
        Slot.VARIANT: variants[digest.digest()[2] % len(variants)] if variants else "",
    }


@dataclass(frozen=True, slots=True)
class Template:
    """A page's bytes, with slots: ``pieces[0] slots[0] pieces[1] … pieces[-1]``."""

    pieces: tuple[bytes, ...]
    slots: tuple[Slot, ...]
    codec: str

    @classmethod
    def of(cls, parts: Iterable[str | Slot], encoding: Encoding) -> Template:
        """Join and encode what lies between the slots; what cannot be is a reference."""
        pieces, slots = [encoding.mark], []
        for is_slot, run in groupby(parts, key=lambda part: isinstance(part, Slot)):
            if not is_slot:
                pieces[-1] += "".join(map(str, run)).encode(encoding.codec, "xmlcharrefreplace")
                continue
            for slot in run:
                slots.append(Slot(slot))
                pieces.append(b"")
        return cls(tuple(pieces), tuple(slots), encoding.codec)

    def fill(self, values: Mapping[Slot, str]) -> bytes:
        """The page with this noise."""
        filled = [self.pieces[0]]
        for slot, piece in zip(self.slots, self.pieces[1:], strict=True):
            filled += (values[slot].encode(self.codec, "xmlcharrefreplace"), piece)
        return b"".join(filled)
