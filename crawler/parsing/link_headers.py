"""The links of HTTP Link headers (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

# Section 3: a target in angle brackets, then parameters.
_LINK: Final = re.compile(
    r"""<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)"""
)
_PARAMETER: Final = re.compile(
    r""";\s*([\w!#$&+.^`|~*-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?"""
)
#: Longer headers are not read to their end: what is looked for is named in fewer bytes.
MAX_HEADER: Final = 8_192


def header_links(headers: Iterable[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each link's reference, as it stands, and its parameters by lower-case name.

    Of a parameter that is given twice the first counts, as section 3.3 wants for ``rel``.
    """
    for header in headers:
        for target, parameters in _LINK.findall(header[:MAX_HEADER]):
            found = reversed(_PARAMETER.findall(parameters))
            yield target.strip(), {name.lower(): quoted or plain for name, quoted, plain in found}
