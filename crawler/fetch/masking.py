"""Removal of secrets from log texts.

Secrets are recognised by their position: the user information of a URL, query parameters and
assignments with names such as ``token``, values of authenticating headers, bearer tokens, and paths
of webhooks. In a log line it is better to mask too much than too little. Fetched and stored content
is never masked.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

MASK: Final = "***"

_TELLING = (
    r"(?:[\w.-]{0,40}(?:token|secret|passw(?:or)?d|passphrase|pwd|signature|credential"
    r"|api[_-]?key|access[_-]?key|session[_-]?id|sessid)[\w.-]{0,40}"
    r"|(?:[\w.-]{0,40}[_.-])?(?:key|auth|sig|sid|authorization|cookie))"
)
_HEADER = (
    r"(?:proxy-)?authorization|(?:set-)?cookie"
    r"|x-[\w-]{0,40}(?:key|token|secret|signature|auth)[\w-]{0,40}"
)
#: Every name that _TELLING or _HEADER matches contains one of these.
_WORDS: Final = (
    "token", "secret", "passw", "passphrase", "pwd", "sig", "credential", "key", "session",
    "sessid", "auth", "sid", "cookie",
)  # fmt: skip
#: For each: characters (in lower case) that a match needs, which spares the search; the pattern;
#: and its replacement.
_PATTERNS: Final = tuple(
    (signs, re.compile(pattern, re.IGNORECASE), put)
    for signs, pattern, put in (
        # user:password@ in a URL, even if the URL is itself a parameter
        (("@",), r"(\b[a-z][a-z0-9+.-]{0,20}://)[^\s/?#\"'<>\\]{1,400}@", rf"\1{MASK}@"),
        (
            ("%40",),
            r"(%3a%2f%2f)(?:(?!%2f|%3f|%23)[^\s/?#&\"'<>\\]){1,400}(?:%40)",
            rf"\1{MASK}%40",
        ),
        # webhooks: anyone who knows the URL may post
        (
            ("slack",),
            r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[^\s?#\"'<>\\]+",
            rf"\1{MASK}",
        ),
        (
            ("discord",),
            r"(discord(?:app)?\.com/api/(?:v\d+/)?webhooks/)[^\s?#\"'<>\\]+",
            rf"\1{MASK}",
        ),
        (("telegram",), r"(api\.telegram\.org/bot)[^\s/?#\"'<>\\]+", rf"\1{MASK}"),
        (
            ("office",),
            r"((?:office|office365)\.com/webhook[^\s/]{0,10}/)[^\s?#\"'<>\\]+",
            rf"\1{MASK}",
        ),
        # 'name': 'value' and (b'name', b'value'), as Python and JSON write them
        (
            _WORDS,
            (
                rf"(?<![\w.-])({_TELLING}|{_HEADER})(\\?[\"']\s{{0,2}}[:,]\s{{0,2}}b?)(\\?[\"'])"
                r"(?:(?!\3)(?:\\.|.))*(\3|$)"
            ),
            rf"\1\2\3{MASK}\4",
        ),
        # a header, up to the end of its line: what it says may be quoted in turn
        (_WORDS, rf"(?<![\w.-])({_HEADER})(\s{{0,2}}:\s{{0,4}})[^\r\n\s][^\r\n]*", rf"\1\2{MASK}"),
        # an assignment, as in a query
        (
            _WORDS,
            (
                rf"(?<![\w.-])({_TELLING})(=|%3d)b?(?:\"[^\"]*\"|'[^']*'"
                r"|(?:(?!%26)[^\s&;,#\"'<>()\[\]{}\\])+)"
            ),
            rf"\1\2{MASK}",
        ),
        (("bearer",), r"\b(bearer)\s{1,4}[\w.~+/=-]{6,}", rf"\1 {MASK}"),
    )
)
_NAME: Final = re.compile(rf"(?:{_TELLING}|{_HEADER})", re.IGNORECASE)
#: Fields with such a name that are not secret: a politeness key is a host.
_NO_SECRETS: Final = frozenset({"key"})


def masked(text: str, known: Collection[str] = ()) -> str:
    """Return the text without secrets: the ``known`` ones, and anything that looks like one.

    >>> masked("GET https://me:pw@example.org/?page=2&api_key=s3cr3t failed")
    'GET https://***@example.org/?page=2&api_key=*** failed'
    """
    small = text.lower()
    for signs, pattern, put in _PATTERNS:
        if any(sign in small for sign in signs):
            text = pattern.sub(put, text)
    # Known secrets last: removing them first could destroy the context that the patterns match.
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _is_secret_name(name: str) -> bool:
    """Return whether a value with this name is a secret."""
    return bool(name) and name not in _NO_SECRETS and _NAME.fullmatch(name) is not None


def _as_text(value: object) -> str:
    match value:
        case bytes():
            return value.decode("utf-8", "replace")
        case Exception():
            return f"{type(value).__name__}: {value}"
        case _:
            return repr(value)


def masked_value(value: object, known: Collection[str] = (), name: str = "") -> object:
    """Mask a value of a log line recursively, and entirely if its name marks a secret."""
    if value is not None and _is_secret_name(name):
        return MASK
    match value:
        case bool() | int() | float() | None:
            return value
        case str():
            return masked(value, known)
        case Mapping():
            return {str(key): masked_value(each, known, str(key)) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [masked_value(each, known) for each in value]
        case _:
            return masked(_as_text(value), known)
