"""Why one page has several URLs: what tells the URL of a duplicate from its page's."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

#: Words by which sites name their printer versions, in their languages.
_PRINT: Final = frozenset(
    "print printer printable printview printversion printerfriendly printfriendly printout "
    "druck drucken druckansicht druckversion imprimer impression imprimir impressao stampa "
    "drukuj afdrukken tisk skrivut utskrift".split()
)
_WORD: Final = re.compile(r"[^\W_]+")


class Variant(StrEnum):
    """How a duplicate's URL differs from its representative's."""

    MIRROR = "mirror"
    PRINTER_VERSION = "printer_version"
    PARAMETERS = "parameters"
    OTHER = "other"


def variant(url: str, representative: str) -> Variant:
    """The kind of a duplicate, by its canonical URL and that of its representative.

    Another host (scheme, name or port) makes a mirror; on the same one, a word such as
    ``print`` that only one of the URLs has makes a printer version, and a difference of
    nothing but the query a parameter variant.
    """
    one, other = urlsplit(url), urlsplit(representative)
    if (one.scheme, one.netloc) != (other.scheme, other.netloc):
        return Variant.MIRROR
    if _says_print(one) != _says_print(other):
        return Variant.PRINTER_VERSION
    return Variant.PARAMETERS if one.path == other.path else Variant.OTHER


def _says_print(url: SplitResult) -> bool:
    words = _WORD.findall(unquote(f"{url.path} {url.query}").lower())
    return not _PRINT.isdisjoint(words)
