"""Near-duplicates: pages that are one page under several URLs, found by LSH.

Locality-sensitive hashing of MinHash values (P. Indyk and R. Motwani 1998; the bands of
J. Leskovec, A. Rajaraman and J. Ullman, "Mining of Massive Datasets", section 3.4): ``b``
bands of ``r`` minima each are hashed, and texts of resemblance s meet in some bucket with
probability 1 - (1 - s**r)**b. Texts that meet are only candidates: the resemblance that the
sketches estimate decides.

Short texts are similar by chance: below :data:`LEAST_SHINGLES` they must be equal, and an
empty text matches no other.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from ctypes import c_char_p, c_int64, c_size_t, c_void_p
from functools import cache
from hashlib import blake2b
from itertools import chain, islice
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from freshet.compiled import function
from freshet.crawler.reduce.sketch import PERMUTATIONS, PLAIN_VERSION, VERSION, Sketch, resemblance

if TYPE_CHECKING:
    from datasketch import MinHashLSH

#: Texts of fewer different shingles are one page only if they are equal.
LEAST_SHINGLES: Final = 20

#: A miss costs a duplicate, a false candidate some microseconds: so they are weighed. At a
#: threshold of 0.9 this gives 9 bands of 14, and nine in ten of those at the threshold meet.
_WEIGHTS: Final = (0.05, 0.95)

#: The number of bands, and the successive minima in each; remaining minima are not used.
Banding: TypeAlias = tuple[int, int]

#: The default threshold, and its bands.
THRESHOLD: Final = 0.9
_BANDING: Final = (9, 14)

#: Leaders compared in one bucket, the first. They resemble each other less than the threshold: a
#: fuller bucket is a template's, and comparing the others would be useless.
BUCKET_SIZE: Final = 64

#: Candidates that are compared with one text, those in most of its buckets first.
_MOST_COMPARED: Final = 16

#: Takes the place of a band's number with the digest of a short text.
_TEXT: Final = b"\xff\xff"
_band_keys: Final = function("band_keys", [c_char_p, c_size_t, c_size_t, c_void_p], is_short=True)


def optimal_banding(threshold: float) -> Banding:
    """Return the bands that decide best whether a resemblance is at least ``threshold`` (0 to 1).

    By datasketch's rule: of all b and r with b r <= 128, the least weighted sum of the integrals
    of the probabilities of a false candidate (below the threshold) and of a miss (above it).

    Raises:
        ValueError: if the threshold is not from 0 to 1, or so high that one band is best.
    """
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be from 0 to 1, not {threshold}")
    if threshold == THRESHOLD:
        # Most stores need no other: they do without the import.
        return _BANDING
    from datasketch import MinHashLSH  # noqa: PLC0415 - slow to import

    try:
        index = MinHashLSH(threshold, PERMUTATIONS, weights=_WEIGHTS)
    except ValueError as error:
        raise ValueError(f"threshold {threshold} is so high that one band is best") from error
    return index.b, index.r


def decoded(stored: Iterable[tuple[str, bytes]]) -> dict[str, Sketch]:
    """Return stored sketches by name, without sketches of another version."""
    read = {bytes((PLAIN_VERSION,)), bytes((VERSION,))}
    return {name: Sketch.from_bytes(data) for name, data in stored if data[:1] in read}


def index_of(sketches: Mapping[str, Sketch], banding: Banding) -> MinHashLSH:
    """Return datasketch's index of texts, by name, without those that are short.

    The texts that it finds are candidates, as with :func:`bucket_keys`.
    """
    from datasketch import MinHashLSH  # noqa: PLC0415 - slow to import

    index = MinHashLSH(num_perm=PERMUTATIONS, params=banding)
    for name, sketch in sketches.items():
        if sketch.shingle_count >= LEAST_SHINGLES:
            index.insert(name, sketch.minhash(), check_duplication=False)
    return index


def bucket_keys(sketch: Sketch, banding: Banding) -> tuple[int, ...]:
    """Return the buckets of a text, as signed 64-bit integers; equal bands have equal keys.

    Each band has one, a hash of its number and its minima; a short text has one, a hash of its
    digest; an empty text has none. Distinct bands share a key with probability 2**-64.
    """
    count, rows = banding
    if sketch.shingle_count >= LEAST_SHINGLES:
        if count * rows > PERMUTATIONS:
            raise ValueError(f"{count} bands of {rows} are more than {PERMUTATIONS} minima")
        minima, keys = sketch.minima.astype("<u4").tobytes(), (c_int64 * count)()
        _band_keys(minima, count, rows, keys)
        return tuple(keys)
    if not sketch.shingle_count:
        return ()
    hashed = blake2b(sketch.text_digest, digest_size=8, salt=_TEXT).digest()
    return (int.from_bytes(hashed, "little", signed=True),)


def same(
    one: Sketch, other: Sketch, threshold: float, *, errors: float = 1.0
) -> tuple[float, float] | None:
    """Return the resemblance of two texts and its standard error, None if they are two pages.

    They are one if the estimate is above the threshold by this number of standard ``errors``: see
    :func:`errors_among`.
    """
    if one.text_digest == other.text_digest and one.shingle_count:
        return 1.0, 0.0
    if min(one.shingle_count, other.shingle_count) < LEAST_SHINGLES:
        return None
    value, standard_error = resemblance(one, other)
    return (value, standard_error) if value - errors * standard_error >= threshold else None


@cache
def errors_among(candidates: int) -> float:
    """Return the standard errors by which one of n candidates must exceed the threshold.

    One text meets many of its template's, and of many estimates some are too high: of texts on
    one site, M. Henzinger ("Finding near-duplicate web pages", SIGIR 2006) found most to be no
    copies. Hence one standard error for a single candidate, at which one in six is too high
    by chance, and for more candidates the number at which it is still one in six of all together
    (Bonferroni's inequality): 2.3 for 16. Equal texts need no estimate.
    """
    normal = NormalDist()
    return -normal.inv_cdf(normal.cdf(-1.0) / max(1, candidates))


class Leaders:
    """The leaders that the texts of a batch may resemble: stored ones, and leaders of the batch."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._buckets: defaultdict[int, set[int]] = defaultdict(set)
        self._sketches: dict[int, Sketch] = {}

    def meet(self, buckets: Mapping[int, Iterable[int]]) -> None:
        """Add the leaders in some buckets of the store."""
        for key, leader_ids in buckets.items():
            bucket = self._buckets[key]
            bucket.update(islice(leader_ids, max(0, BUCKET_SIZE - len(bucket))))

    def unread(self, texts: Iterable[Sequence[int]]) -> set[int]:
        """Return the leaders with sketches that texts with these keys need."""
        return {
            leader_id
            for keys in texts
            for leader_id in self._likely(keys)
            if leader_id not in self._sketches
        }

    def read(self, sketches: Mapping[int, Sketch]) -> None:
        """Add the sketches of leaders that are :meth:`unread`."""
        self._sketches.update(sketches)

    def add(self, leader_id: int, sketch: Sketch, keys: Collection[int]) -> None:
        """Make a text a leader."""
        self._sketches[leader_id] = sketch
        buckets = self._buckets
        for key in keys:
            if key not in buckets:
                buckets[key] = {leader_id}
            elif len(buckets[key]) < BUCKET_SIZE:
                buckets[key].add(leader_id)

    def nearest(self, sketch: Sketch, keys: Sequence[int]) -> tuple[int, float, float] | None:
        """Return the leader of a text's group: the most similar, then the oldest.

        With its resemblance, and the standard error of that.
        """
        likely = self._likely(keys)
        errors = errors_among(len(likely))
        matches = [
            (leader_id, *found)
            for leader_id in likely
            if (found := same(sketch, self._sketches[leader_id], self._threshold, errors=errors))
        ]
        return max(matches, key=lambda match: (match[1], -match[0]), default=None)

    def _likely(self, keys: Sequence[int]) -> list[int]:
        """Return the leaders in most of these buckets, at most :data:`_MOST_COMPARED`."""
        buckets = self._buckets
        met = [bucket for key in keys if key in buckets and (bucket := buckets[key])]
        if not met:
            return []
        shared = Counter(chain.from_iterable(met))
        return sorted(shared, key=lambda i: (-shared[i], i))[:_MOST_COMPARED]


# -- variants ----------------------------------------------------------------

#: Words by which sites name their printer versions, in their languages.
_PRINT: Final = frozenset(
    "print printer printable printview printversion printerfriendly printfriendly printout "
    "druck drucken druckansicht druckversion imprimer impression imprimir impressao stampa "
    "drukuj afdrukken tisk skrivut utskrift".split()
)
_WORD: Final = re.compile(r"[^\W_]+")


#: The difference between a duplicate's URL and its representative's.
Variant: TypeAlias = Literal["mirror", "printer_version", "parameters", "other"]


def variant(url: str, representative: str) -> Variant:
    """Return the kind of a duplicate, by its canonical URL and its representative's.

    Another host (scheme, name or port) makes a mirror; on the same one, a word such as
    ``print`` that only one of the URLs has makes a printer version, and a difference only in
    the query a parameter variant.
    """
    one, other = urlsplit(url), urlsplit(representative)
    if (one.scheme, one.netloc) != (other.scheme, other.netloc):
        return "mirror"
    if _says_print(one) != _says_print(other):
        return "printer_version"
    return "parameters" if one.path == other.path else "other"


def _says_print(url: SplitResult) -> bool:
    words = _WORD.findall(unquote(f"{url.path} {url.query}").lower())
    return not _PRINT.isdisjoint(words)
