"""A format of bodies: ``freshet.formats``. The process that reads large bodies loads it too."""

from typing import Final

from freshet.crawler.reduce.formats import Body, Format
from freshet.crawler.reduce.main_text import plain_text


def _read(body: bytes, _content_type: str | None) -> Body:
    """Read the lines of a ledger, without their numbers."""
    lines = body.decode("utf-8", "replace").splitlines()
    text = "\n\n".join(line.partition(";")[2] for line in lines)
    return Body("utf-8", blocks=plain_text(text), title="A ledger")


FORMAT: Final = Format("application/x-ledger", _read, version="ledger1")
