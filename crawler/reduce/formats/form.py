"""A format, and what it makes of a body."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from freshet.crawler.reduce.blocks import Blocks

#: Files with more values are compared by their lines.
MOST_VALUES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a body: ``html``, or text without markup in ``blocks``.

    ``html`` is the page in UTF-8, as it came or as the format has written it. It goes the way of
    every page: links, main text and document are found in it. Else ``blocks`` are compared, and the
    document shows ``shown`` (None: the same blocks), as code where ``code`` names a language.
    ``encoding`` is the WHATWG name of the character encoding, None of a format that has none.
    """

    encoding: str | None
    html: bytes | None = None
    blocks: Blocks = field(default_factory=Blocks)
    shown: str | None = None
    code: str | None = None
    title: str | None = None
    author: str | None = None

    @property
    def text(self) -> str:
        """The text that the document shows."""
        return "\n\n".join(self.blocks.texts) if self.shown is None else self.shown


#: It is given a body and its Content-Type, and never raises for what a body holds.
Reader: TypeAlias = Callable[[bytes, str | None], Body]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of bodies: their media types, and the reader of them.

    ``types`` matches their media types in lower case, ``first_bytes`` are those that show the
    format whatever the label says; then ``label`` becomes the media type. ``version`` is added to
    those of texts and documents: raise it where the reader gives another text for the same bytes.
    ``most_inline`` is the length of a body that is read in the event loop's process, where it may
    block for 100 ms: 0 reads all in the parser's process, which has limits of memory and time;
    None is for readers whose work is bounded by the counts of
    :func:`freshet.crawler.reduce.nesting.is_calm`. ``is_binary``: its bytes are no text.
    ``lacks`` names what it cannot read, and the extra that has to be installed for it.
    """

    types: str
    read: Reader
    first_bytes: tuple[bytes, ...] = ()
    label: str = ""
    version: str = ""
    most_inline: int | None = None
    is_binary: bool = False
    lacks: tuple[str, str] | None = None
