"""The identity of a page: the one spelling of its URL under which the store knows it.

The store needs the rule itself, to join pages that an earlier rule kept apart.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

#: Query parameters that say how a visitor came, never what is shown; names in lower case.
#: The ``utm_`` family is matched by its prefix.
TRACKING_PARAMETERS: Final = frozenset(
    {
        # Google Ads, Campaign Manager, Analytics cross-domain links
        *("gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid"),
        *("_ga", "_gl"),
        # Meta, Instagram, Microsoft, Twitter, TikTok, LinkedIn, Yandex
        *("fbclid", "igshid", "igsh", "msclkid", "twclid", "ttclid", "li_fat_id"),
        *("yclid", "ysclid"),
        # mailings: Mailchimp, HubSpot, Klaviyo, Marketo, Drip, Vero, Olytics
        *("mc_cid", "mc_eid", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking"),
        *("_kx", "mkt_tok", "__s", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id"),
        # Openstat, Branch, Matomo
        *("_openstat", "_branch_match_id", "mtm_campaign", "mtm_source", "mtm_medium"),
        # ASP.NET, when it tries whether the visitor takes cookies
        "aspxautodetectcookiesupport",
    }
)

#: An escape. Behind a stray '%' nobody knows where an escape begins: that stays as it is.
_ESCAPE: Final = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%[0-9A-Fa-f]{2}")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
#: The session of an ASP.NET site without cookies is a segment of the path, ``/(S(…))``: ``S`` is
#: the session's id, ``A`` and ``F`` are who the visitor is, ``X`` whether cookies were tried.
#: ASP.NET 1.1 wrote the id alone, ``/(…)``. In a path that somebody wrote in lower case only a
#: session's id is sure: 24 characters. Servlets append theirs to a segment.
_OPEN, _CLOSE = r"(?:\(|%28)", r"(?:\)|%29)"
_ID, _LOWER_CASE = r"[a-z0-5]{24}", rf"(?:[afx]{_OPEN}[^()/%]+{_CLOSE})*"
_SESSION: Final = re.compile(
    rf"/{_OPEN}(?:(?:[AFSX]{_OPEN}[^()/%]+{_CLOSE})+|{_ID}"
    rf"|{_LOWER_CASE}s{_OPEN}{_ID}{_CLOSE}{_LOWER_CASE}){_CLOSE}(?=/|$)"
    r"|;(?i:jsessionid)=[^;/]*"
)


def identity(href: str) -> str:
    """Return the identity of the page at a WHATWG href: without what does not select its content.

    The fragment, :data:`TRACKING_PARAMETERS` with every ``utm_…``, sessions in the path, the '?' of
    an empty query, and credentials are dropped: an identity is stored and shown. Escapes are
    normal (RFC 3986, section 6.2.2). All other parameters keep their bytes and their order, since
    both may matter to a server. Idempotent.
    """
    scheme, _, rest = href.partition("#")[0].partition("://")
    head, _, query = rest.partition("?")
    authority, _, path = head.partition("/")
    kept = "&".join(p for p in _normal(query).split("&") if not _is_tracking(p))
    path = _SESSION.sub("", f"/{_normal(path)}") or "/"
    place = f"{scheme}://{authority.rpartition('@')[2]}{path}"
    return f"{place}?{kept}" if kept else place


def _normal(text: str) -> str:
    return _ESCAPE.sub(_normal_escape, text) if "%" in text else text


def _normal_escape(found: re.Match[str]) -> str:
    """Return the character of an escape that needs none (RFC 3986, 2.3), else upper-case digits."""
    character = chr(int(found[0][1:], 16))
    return character if _UNRESERVED.match(character) else found[0].upper()


def _is_tracking(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name.startswith("utm_") or name in TRACKING_PARAMETERS


# -- variants ----------------------------------------------------------------

#: Parameters of a URL; one with more has no variants.
_MOST_PARAMETERS: Final = 8
_PATH_PARAMETER: Final = re.compile(r";([^;=/]+)=([^;/]+)")
#: A segment that may be the id of a session.
_TOKEN_SEGMENT: Final = re.compile(
    r"(?:(?:sid|sess|sessid|session)[-_.~:=])?(?=[^/]*\d)[0-9A-Za-z]{16,}", re.IGNORECASE
)
#: A segment that may be a view of a page, and select none.
_VIEW_SEGMENT: Final = re.compile(
    r"print(?:[-_]?(?:view|version|friendly|page))?|printable|printer(?:[-_]?friendly)?|amp",
    re.IGNORECASE,
)
#: A URL with such a segment, or a host's name that looks like one.
_ODD_SEGMENT: Final = re.compile(
    rf"/(?:{_TOKEN_SEGMENT.pattern}|{_VIEW_SEGMENT.pattern})(?:/|$)", re.IGNORECASE
)


class UrlVariant(NamedTuple):
    """A part of a URL, which other URLs of the page may lack: its name, value, and the rest.

    The name shows where it stands: ``?name`` in the query, ``;name`` in the path, ``/#3`` is
    the third segment, and ``/print`` is a segment without a value of its own.
    """

    name: str
    value: str
    rest: str

    @property
    def key(self) -> str:
        """The name with the value."""
        is_name = self.name[0] == "/" and not self.value
        return self.name if is_name else f"{self.name}={self.value}"


def variants(url: str) -> Iterator[UrlVariant]:
    """Yield the parts of a canonical URL that may not select its content."""
    head, _, query = url.partition("?")
    if query:
        parts = [(part.partition("="), part) for part in query.split("&")]
        if len({name for (name, *_), _ in parts}) > _MOST_PARAMETERS:
            return
        yield from _without_parameters(head, parts)
    end = f"?{query}" if query else ""
    if ";" in head:
        for found in _PATH_PARAMETER.finditer(head):
            rest = head[: found.start()] + head[found.end() :]
            yield UrlVariant(f";{found[1]}", found[2], rest + end)
    if _ODD_SEGMENT.search(head):
        yield from _without_segments(head, end)


def _without_parameters(
    head: str, parts: Sequence[tuple[tuple[str, str, str], str]]
) -> Iterator[UrlVariant]:
    """Yield the parameters of a query, which is given in parts, split at their signs."""
    given = defaultdict[str, list[str]](list)
    for (name, _, value), _ in parts:
        given[name].append(value)
    for name, values in given.items():
        others = "&".join(part for (other, *_), part in parts if other != name)
        yield UrlVariant(f"?{name}", "&".join(values), f"{head}?{others}" if others else head)


def _without_segments(head: str, end: str) -> Iterator[UrlVariant]:
    """Yield the segments of a path that look like a session or a way to show a page.

    ``head`` is the URL without its query, which follows as ``end``.
    """
    scheme, _, rest_of_url = head.partition("://")
    site, slash, path = rest_of_url.partition("/")
    segments = path.split("/")
    for i, segment in enumerate(segments):
        if _TOKEN_SEGMENT.fullmatch(segment):
            name, value = f"/#{i + 1}", segment
        elif _VIEW_SEGMENT.fullmatch(segment):
            name, value = f"/{segment}", ""
        else:
            continue
        rest = "/".join((*segments[:i], *segments[i + 1 :]))
        yield UrlVariant(name, value, f"{scheme}://{site}{slash}{rest}{end}")


def without(url: str, keys: Collection[str]) -> tuple[str, str | None]:
    """Return a URL without the parts of these names or keys, and the first of these."""
    first: str | None = None
    while keys:
        found = ((key, it.rest) for it in variants(url) for key in (it.name, it.key) if key in keys)
        key, rest = next(found, (None, url))
        if key is None:
            break
        first, url = first or key, rest
    return url, first
