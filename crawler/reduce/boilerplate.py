"""The frame of a page: elements and short blocks that are not its main text.

:mod:`crawler.reduce.main_text` walks the page and asks these functions. The frame is what a site
repeats around its pages (navigation, banners, sharing, consent) and what changes without an edit
(build stamps, counters, server names). All rules are general: none names a site or a generator.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Never text that a reader sees, or controls that a reader fills in.
INVISIBLE_TAGS: Final = _words(
    "script style template svg iframe object embed applet canvas audio video map "
    "head title button select option optgroup datalist input textarea label output meter "
    "progress dialog noframes noembed"
)
#: Elements that say themselves that they are frame.
FRAME_TAGS: Final = frozenset({"nav", "aside", "menu"})
#: Frame where they belong to the page, content where they belong to an article.
PAGE_EDGE_TAGS: Final = frozenset({"header", "footer"})
_FRAME_ROLES: Final = _words(
    "navigation banner contentinfo complementary search menu menubar dialog alertdialog"
)

#: Words that name a part of the frame in an id or class.
_FRAME_WORDS: Final = _words(
    "ad ads advert adverts advertisement advertising sponsor sponsors sponsored promo banner "
    "banners nav navbar navigation topnav sidenav subnav menubar submenu megamenu "
    "dropdown sidebar sidebars footer masthead breadcrumb breadcrumbs crumbs pagination pager "
    "paginator cookie cookies consent gdpr share sharing sharer social related recommended "
    "recommendations newsletter toc skiplink skip respond toolbar"
)
#: Words for position or shape: neutral beside a frame word.
_LAYOUT_WORDS: Final = _words(
    "site page global main primary secondary top bottom left right inner outer wrapper wrap "
    "container box block bar area section panel widget widgets list items item links link "
    "button buttons icon icons group row col column content slot unit text menu notice popup "
    "overlay modal form post posts entry article blog mobile desktop sticky fixed header head "
    "title heading media on to this comment comments the my js"
)
_KNOWN_WORDS: Final = _FRAME_WORDS | _LAYOUT_WORDS
#: Frame beside any other word: ``blog-newsletter-cta``.
_SURE_WORDS: Final = _words(
    "bio breadcrumb breadcrumbs byline cookie footer modal newsletter pagination popup related "
    "recommended sharing sidebar signup social sr subscribe subscription tooltip upsell vcard"
)
#: A token that begins so tells of the page or its subject, not of the element.
_STATES: Final = _words("has no is with without category tag page post type status")
_WORD: Final = re.compile(r"[A-Z]*[^\W\d_A-Z]+|[A-Z]+")


def is_frame_name(element_id: str | None, classes: str | None) -> bool:
    """Return whether an element's id or class names a part of the frame.

    A token counts when all its words are frame or layout words and at least one of them is
    a frame word: ``site-footer`` and ``navLink`` do, ``footnote``, ``share-price``,
    ``has-sidebar`` and ``thread-header-title`` do not. Some words say enough alone.
    """
    if element_id and _is_frame_token(element_id):
        return True
    return classes is not None and _is_frame_class(classes)


# Classes repeat over a site, ids do not: only the former are worth caching.
@lru_cache(maxsize=4096)
def _is_frame_class(classes: str) -> bool:
    return any(_is_frame_token(token) for token in classes.split())


def _is_frame_token(token: str) -> bool:
    words = [found[0].lower() for found in _WORD.finditer(token)]
    if _KNOWN_WORDS.issuperset(words):
        return not _FRAME_WORDS.isdisjoint(words)
    return words[0] not in _STATES and not _SURE_WORDS.isdisjoint(words)


def is_hidden(attributes: Mapping[str, str | None]) -> bool:
    """Return whether the element is marked as not shown (``hidden``, ``aria-hidden=true``)."""
    return "hidden" in attributes or attributes.get("aria-hidden") == "true"


def is_frame_role(attributes: Mapping[str, str | None]) -> bool:
    """Return whether the element's landmark role (WAI-ARIA 1.2, section 5.3.4) is frame."""
    role = attributes.get("role")
    return role is not None and role.lower() in _FRAME_ROLES


_CLOCK: Final = r"\d{1,2}:\d{2}"
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_WEEKDAY: Final = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)"
# A distance from now reads otherwise tomorrow, whatever it is the moment of.
_AGO: Final = r"""(?:(?:(?:about|around|almost|nearly|over|under|(?:more|less)\s+than)\s+)?
    (?:\d+|an?|(?:an?\s+)?(?:few|couple\s+of)|several|half\s+an|one|two|three|four|five|six)\s*
    (?:[smhdwy]|secs?|mins?|hrs?|mos?|yrs?|moments?|(?:second|minute|hour|day|week|month|year)s?)
    \s+ago\b)"""
_LATELY: Final = r"(?:just\s+now|moments\s+ago|earlier\s+today|yesterday)\b"
#: The same in German, French, Spanish and Portuguese.
_ELSEWHERE_AGO: Final = r"""(?:vor|il\s+y\s+a|hace|há)\s+(?:\w+\s+){1,2}(?:sekunde|minute|stunde|tag
    |woche|monat|jahr|seconde|heure|jour|semaine|mois|an|segundo|minuto|hora|d[ií]a|semana
    |m[eê]s|a[nñ]o)\w{0,2}$"""
#: What people did at that moment.
_DONE: Final = r"""(?:last\s+)?(?:updated?|modified|edited|changed|reviewed|posted|published|added
    |written|created|built|uploaded|asked|answered|commented|replied|active|activity|seen|viewed
    |visit(?:ed)?|post|reply|commit|checked|synced)\s*:?\s+(?:by\s.{1,60}?\s)?"""
_MOMENT: Final = rf"""(?:\d{{4}}[-/]\d\d?[-/]\d\d?|\d\d?[./-]\d\d?[./-]\d{{2,4}}|{_CLOCK}
    |\d\d?(?:st|nd|rd|th)?\s+{_MONTH}|{_MONTH}\s+\d\d?\b|\d{{10,13}}\b|{_AGO})"""
_WHEN: Final = rf"\s*[:–-]?\s*(?:(?:on|at)[:\s]\s*)?{_WEEKDAY}?{_MOMENT}"
_DURATION: Final = r"\d+(?:[.,]\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?)\b"
_PAGE: Final = r"(?:(?:this|the)\s+)?(?:page|site|website|document|file)\s+(?:was\s+)?"
_TAIL: Final = r"[\d\s:,./+tz-]*(?:am|pm|utc|gmt|by\s.*)?\.?$"
#: Words of machines only; people update, modify, build and create, and write about it.
_MADE: Final = r"""(?:(?:auto(?:matically)?[-\s])?(?:generated|rendered|refreshed|cached|crawled
    |compiled|deployed|exported|synced))"""
_IDENTIFIER: Final = r"(?=[-\w]*\d)[-\w]{6,}"

#: The most words and characters of a stamp.
_STAMP_WORDS: Final = 14
_STAMP_CHARACTERS: Final = 200

# Sentences of machines: when, how fast, by which server and under which identifier a page was
# made, for how many visitors; how long ago anything was; and the yearly copyright line.
_STAMP: Final = re.compile(
    rf"""
      (?:{_PAGE})? last[-\s]
        (?:{_MADE}|updated|modified|edited|revised|changed|saved|built|created)\b
        .* (?:{_MOMENT} | \b(?:19|20)\d\d\b)
    | (?:{_PAGE})? {_MADE} {_WHEN}
    | (?:{_PAGE})? (?:updated|modified) {_WHEN} {_TAIL}
    | {_PAGE} (?:built|created|edited) {_WHEN} {_TAIL}
    | (?:built|created) (?=.*{_CLOCK}) {_WHEN} {_TAIL}
    | (?:{_PAGE})? (?:generated|rendered|served|loaded) (?:\s+(?:on|at|by|from)\s.{{0,40}}?)?
        \s+ in \s {_DURATION}
    | (?:{_PAGE})? (?:auto(?:matically)?[-\s])? generated \s (?:by|with|using) \b .* \d
    | (?:{_PAGE})? (?:served|rendered|delivered|hosted) \s (?:by|from) \s
        (?:node|server|host|cache|worker|pod|instance|backend|cluster)\b
    | (?:node|server|host|instance|worker|pod) \s* [:\#] \s* [-\w.]*\d[-\w.]*$
    | (?:build|revision|commit|request|session|trace|csrf|token|nonce)
        (?:[-\s](?:id|number|no\.?|hash|key|token))* \s* [:\#=]? \s* {_IDENTIFIER}$
    | (?:(?:page|total|daily|unique|today'?s)\s+)* (?:visitors?|visits|views|hits|page\s?views)
        (?:\s+(?:today|online|now|so\s+far|this\s+\w+))? \s* [:\#=]? \s* [\d.,]+$
    | (?:you\s+are\s+)? (?:visitor|guest) \s+ (?:number\s+|no\.?\s+|\#\s*)? [\d.,]+\W?$
    | it \s is \s (?:now\s)? {_CLOCK}
    | (?:(?:current|server|local)\s+(?:date|time)\b) .* \d
    | (?:now|today(?:\s+is)?) {_WHEN} {_TAIL}
    | (?:{_DONE})? (?:{_AGO}|{_LATELY}) (?:\s*,?\s+at)? {_TAIL}
    | {_DONE} (?:today|(?:(?:in|within)\s+the\s+)?(?:last|past|this)\s+(?:hour|day|night|week|month
        |year))\b (?:\s*,?\s+at)? {_TAIL}
    | {_ELSEWHERE_AGO}
    | (?:copyright\b|©|\(c\)\s) .* (?:\b(?:19|20)\d\d\b | all\s+rights\s+reserved)
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: The same where the count comes first.
_COUNT: Final = re.compile(
    rf"""
      [\d.,]+ \s+ (?:unique\s+)? (?:visitors?|visits|views|hits|page\s?views
        |(?:users?|guests?|members?)(?=\s+(?:online|now)))
        (?:\s+(?:today|online|now|so\s+far))? \W?$
    | \d+ \s+ (?:database\s+)? (?:queries|query|requests?)\b .* {_DURATION}
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: The first three characters of a stamp that begins with a word: spares the pattern for
#: nearly all blocks.
_STAMP_STARTS: Final = frozenset(
    word[:3]
    for word in _words(
        "last the this page site website document file auto generated rendered refreshed cached "
        "crawled compiled deployed exported updated modified synced built created served loaded "
        "delivered hosted node server host instance worker pod build revision commit request "
        "session trace csrf token nonce total daily unique today visit views hits you guest "
        "current local now copyright (c) vor hace"
    )
) | {"it ", "il ", "há "}
#: One of these is in every stamp that tells a distance from now in English.
_DISTANCES: Final = (" ago", "just now", "yesterday", "today", "last ", "past ", "this ")


def is_stamp(block: str) -> bool:
    """Return whether a short block says when, where or how often the page was made or shown.

    Such a stamp changes although nobody edited the page. A price, the date of an event and
    a date of publication are content, but for one that is told as a distance from now: the block
    must begin with the words of a stamp and carry a moment, a duration, a count or an identifier.
    """
    if len(block) > _STAMP_CHARACTERS or block.count(" ") >= _STAMP_WORDS:
        return False
    if block[:1].isdecimal() and _COUNT.match(block):
        return True
    small = block.casefold()
    begins = small[:3] in _STAMP_STARTS or small[:1] == "©"
    return (begins or any(word in small for word in _DISTANCES)) and bool(_STAMP.match(block))
