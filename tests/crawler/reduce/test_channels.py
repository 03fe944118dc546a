"""Kinds of change between two versions of a page."""

from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.reduce.channels import Channels, channels, have_same_tags, kinds_of, made_by
from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints
from freshet.storage.entries import CHANNELS

URL = "https://a.example/guide/page"
TYPE = "text/html; charset=utf-8"
TEXT = (
    "The reservoir above the village was built in three summers, and it has fed the mills below "
    "it since then, as the ledgers of the parish say in more detail than anybody needs."
)
PAGE = (
    "<!doctype html><html lang=en><head><title>The reservoir</title>{head}</head><body><main>"
    f"<h1>The reservoir</h1><p>{TEXT}</p>{{body}}<p>{TEXT[::-1]}</p></main></body></html>"
)


def made(body: str, head: str = "") -> Channels:
    return channels(PAGE.format(body=body, head=head).encode(), URL, TYPE)


def kinds(old: str, new: str) -> set[str]:
    found, back = kinds_of(made(old), made(new)), kinds_of(made(new), made(old))
    assert found == back
    return set(found)


def delivered(body: str) -> object:
    return document(PAGE.format(body=body, head="").encode(), URL, TYPE)


WORDS = [
    ("<p>It costs 10 euros.</p>", "<p>It costs 12 euros.</p>"),
    ("", "<p>A paragraph that was not there before, of some words.</p>"),
    ("<h2>Opening hours</h2><p>Daily.</p>", "<h2>Closing hours</h2><p>Daily.</p>"),
    ("<ul><li>bread</li><li>milk</li></ul>", "<ul><li>bread</li><li>milk</li><li>salt</li></ul>"),
    ("<ul><li>bread</li><li>milk</li></ul>", "<ul><li>bread</li></ul>"),
    ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
     "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>3</td></tr></table>"),
    ("<pre><code>a = 1</code></pre>", "<pre><code>a = 2</code></pre>"),
    ("<blockquote><p>As he said</p></blockquote>", "<blockquote><p>As she said</p></blockquote>"),
    ("<p>See <a href=/x>the map</a> of it</p>", "<p>See <a href=/x>the plan</a> of it</p>"),
    ("<dl><dt>Depth</dt><dd>12 m</dd></dl>", "<dl><dt>Depth</dt><dd>14 m</dd></dl>"),
    ("<p>a cat sat here</p>", "<p>A cat sat here</p>"),
    ("<p>It is not <em>full</em>.</p>", "<p>It is <em>full</em>.</p>"),
]  # fmt: skip
LINKS = [
    ("<p>See <iframe src=/map title=It></iframe>.", "<p>See <iframe src=/plan title=It></iframe>."),
    ("<p>See <video><source src=/a.mp4></video>.", "<p>See <video><source src=/b.mp4></video>."),
    ("<p>See <a href=/map>the map</a>.</p>", "<p>See <a href=/plan>the map</a>.</p>"),
    ("<p>See <a href=/map>the map</a>.</p>", "<p>See the map.</p>"),
    ("<p>See the map.</p>", "<p>See <a href=/map>the map</a>.</p>"),
    ("<p>See <a href=/map#north>the map</a>.</p>", "<p>See <a href=/map#south>the map</a>.</p>"),
    ("<p>Call <a href=tel:+4912>us</a>.</p>", "<p>Call <a href=tel:+4913>us</a>.</p>"),
    ("<p>Mail <a href=mailto:a@x.org>us</a>.</p>", "<p>Mail <a href=mailto:b@x.org>us</a>.</p>"),
    ("<p>Get <a href=/v1/f.zip>it</a>.</p>", "<p>Get <a href=/v2/f.zip>it</a>.</p>"),
    ("<p>A <a href=/d?id=1>file</a>.</p>", "<p>A <a href=/d?id=2>file</a>.</p>"),
    ("<ul><li>The <a href=/1>one</a></li><li>The <a href=/2>two</a></li></ul>",
     "<ul><li>The <a href=/2>one</a></li><li>The <a href=/1>two</a></li></ul>"),
    ("<table><tr><td>x</td><td><a href=/1>y</a></td></tr><tr><td>1</td><td>2</td></tr></table>",
     "<table><tr><td>x</td><td><a href=/2>y</a></td></tr><tr><td>1</td><td>2</td></tr></table>"),
    ("<h2><a href=/old>More</a></h2><p>of it</p>", "<h2><a href=/new>More</a></h2><p>of it</p>"),
    ("<p><a href=http://b.example/>B</a> is</p>", "<p><a href=https://b.example/>B</a> is</p>"),
]  # fmt: skip
IMAGES = [
    ("<p><img src=/1.png alt=Dam> seen</p>", "<p><img src=/2.png alt=Dam> seen</p>"),
    ("<p><img src=/1.png alt=Dam> seen</p>", "<p><img src=/1.png alt=Lake> seen</p>"),
    ("<p>The dam is seen</p>", "<p><img src=/1.png alt=Dam>The dam is seen</p>"),
    ("<p><img src=/1.png alt=Dam>The dam</p>", "<p>The dam</p>"),
    ("<p><img src=/1.png> seen</p>", "<p><img src=/1.png alt=Dam> seen</p>"),
    ("<p><img data-src=/1.png src=data:,x> seen</p>",
     "<p><img data-src=/2.png src=data:,x> seen</p>"),
    ("<h2>The <img src=/1.png alt=a> dam</h2>", "<h2>The <img src=/2.png alt=a> dam</h2>"),
    ("<p>x <img src=https://i.example/a/1.jpg alt=b></p>",
     "<p>x <img src=https://j.example/a/1.jpg alt=b></p>"),
    ("<ul><li><img src=/1.png alt=a> one</li><li>two</li></ul>",
     "<ul><li><img src=/9.png alt=a> one</li><li>two</li></ul>"),
    ("<p>a <img src=/1.png alt=x> b</p>", "<p>a <img src=/1.png alt=x><img src=/2.png> b</p>"),
    ("<p>a <img src=/c.png?v=2 alt=x></p>", "<p>a <img src=/c.png?v=3 alt=x></p>"),
    ("<p>a <img src=/c.3f9ac01b.png alt=x></p>", "<p>a <img src=/c.99ac01b2.png alt=x></p>"),
    ("<p>a <img src=/chart?year=2024 alt=x></p>", "<p>a <img src=/chart?year=2025 alt=x></p>"),
]  # fmt: skip
STATE = [
    ("<ul><li><input type=checkbox checked>milk<li>bread</ul>",
     "<ul><li><input type=checkbox>milk<li>bread</ul>"),
    ("<p><input type=checkbox> I will come to the mill</p>",
     "<p><input type=checkbox checked> I will come to the mill</p>"),
    ("<ol reversed><li>one</li><li>two</li></ol>", "<ol><li>one</li><li>two</li></ol>"),
    ("<p><span role=switch aria-checked=true>Sluice</span></p>",
     "<p><span role=switch aria-checked=false>Sluice</span></p>"),
    ("<ul><li><input type=checkbox>milk<li><input type=checkbox checked>bread</ul>",
     "<ul><li><input type=checkbox checked>milk<li><input type=checkbox>bread</ul>"),
    ("<ul><li><input type=checkbox>milk</li></ul>",
     "<ul><li><input type=checkbox checked>milk</li></ul>"),
    ("<p><input type=radio name=a checked>yes <input type=radio name=a>no</p>",
     "<p><input type=radio name=a>yes <input type=radio name=a checked>no</p>"),
    ("<p>Size <select><option>S<option>M</select></p>",
     "<p>Size <select><option>S<option disabled>M</select></p>"),
    ("<p><span role=checkbox aria-checked=false>Mill open</span></p>",
     "<p><span role=checkbox aria-checked=true>Mill open</span></p>"),
    ("<p><span role=slider aria-valuenow=3>Water</span></p>",
     "<p><span role=slider aria-valuenow=5>Water</span></p>"),
    ("<ol start=3><li>one</li><li>two</li></ol>", "<ol start=7><li>one</li><li>two</li></ol>"),
    ("<ol><li>one</li><li value=4>two</li></ol>", "<ol><li>one</li><li value=5>two</li></ol>"),
]  # fmt: skip
#: Documents show what such a control holds in words.
VALUES = [
    ("<p>Level <input type=range value=3></p>", "<p>Level <input type=range value=4></p>"),
    ("<p>Seats <input type=number value=3></p>", "<p>Seats <input type=number value=0></p>"),
    ("<p>Size <select><option selected>S<option>M</select></p>",
     "<p>Size <select><option>S<option selected>M</select></p>"),
    ("<p>Built <progress value=3 max=9></progress></p>",
     "<p>Built <progress value=4 max=9></progress></p>"),
    ("<p>Full <meter value=.3></meter></p>", "<p>Full <meter value=.9></meter></p>"),
]  # fmt: skip
ORDER = [
    ("<p>First come the mills.</p><p>Then come the fields.</p>",
     "<p>Then come the fields.</p><p>First come the mills.</p>"),
    ("<ul><li>bread</li><li>milk</li></ul>", "<ul><li>milk</li><li>bread</li></ul>"),
    ("<ol><li>Anna</li><li>Bela</li><li>Cora</li></ol>",
     "<ol><li>Cora</li><li>Anna</li><li>Bela</li></ol>"),
    ("<table><tr><td>a</td><td>1</td></tr><tr><td>b</td><td>2</td></tr></table>",
     "<table><tr><td>b</td><td>2</td></tr><tr><td>a</td><td>1</td></tr></table>"),
    ("<h2>North</h2><p>Cold.</p><h2>South</h2><p>Warm.</p>",
     "<h2>South</h2><p>Warm.</p><h2>North</h2><p>Cold.</p>"),
    ("<ul><li>The <a href=/1>one</a></li><li>The <a href=/2>two</a></li></ul>",
     "<ul><li>The <a href=/2>two</a></li><li>The <a href=/1>one</a></li></ul>"),
    ("<dl><dt>a</dt><dd>x</dd><dt>b</dt><dd>y</dd></dl>",
     "<dl><dt>b</dt><dd>y</dd><dt>a</dt><dd>x</dd></dl>"),
    ("<p>Words</p><pre><code>a = 1</code></pre>", "<pre><code>a = 1</code></pre><p>Words</p>"),
    ("<p>Words</p><blockquote><p>said</p></blockquote>",
     "<blockquote><p>said</p></blockquote><p>Words</p>"),
    ("<p>x <img src=/1.png alt=a><img src=/2.png alt=b></p>",
     "<p>x <img src=/2.png alt=b><img src=/1.png alt=a></p>"),
    ("<p>The <img src=/1.png alt=a> dam</p><p>A mill</p>",
     "<p>A mill</p><p>The <img src=/1.png alt=a> dam</p>"),
]  # fmt: skip
LAYOUT = [
    ("<p>☐ open on Sundays</p>", "<p>☑ open on Sundays</p>"),
    ("<p>The dam is old.</p>", "<p>The <em>dam</em> is old.</p>"),
    ("<p>The dam is <em>old</em>.</p>", "<p>The dam is <strong>old</strong>.</p>"),
    ("<p>The dam is old. It stands.</p>", "<p>The dam is old.</p><p>It stands.</p>"),
    ("<h2>The mills</h2><p>Two.</p>", "<h3>The mills</h3><p>Two.</p>"),
    ("<p>The mills</p><p>Two.</p>", "<h2>The mills</h2><p>Two.</p>"),
    ("<ul><li>one</li><li>two</li></ul>", "<ol><li>one</li><li>two</li></ol>"),
    ("<p>one</p><p>two</p>", "<ul><li>one</li><li>two</li></ul>"),
    ("<p>Type make</p>", "<p>Type <code>make</code></p>"),
    ("<pre><code>if a:\n    b()</code></pre>", "<pre><code>if a:\nb()</code></pre>"),
    ("<p>The old price</p>", "<p>The <del>old</del> price</p>"),
    ("<p>As he said</p>", "<blockquote><p>As he said</p></blockquote>"),
    ("<p>10 2 m</p>", "<p>10 <sup>2</sup> m</p>"),
    ("<pre><code class=lang-c>a()</code></pre>", "<pre><code class=lang-d>a()</code></pre>"),
    ("<p>one two</p>", "<p>one<br>two</p>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        pytest.param(kind, *pair, id=f"{kind} {n}")
        for kind, pairs in (
            ("words", WORDS), ("links", LINKS), ("images", IMAGES), ("state", STATE),
            ("order", ORDER), ("layout", LAYOUT),
        )
        for n, pair in enumerate(pairs)
    ],
)  # fmt: skip
def test_a_change_is_of_its_kind_alone(kind: str, old: str, new: str) -> None:
    assert kinds(old, new) == {kind}


@pytest.mark.parametrize(("old", "new"), VALUES)
def test_what_a_control_holds_is_a_state_that_is_read_as_words(old: str, new: str) -> None:
    assert kinds(old, new) == {"state", "words"}


NOISE = [
    ("<p>See <iframe src='/map?utm_source=a'></iframe></p>",
     "<p>See <iframe src='/map?utm_source=b'></iframe></p>"),
    ("<p>See <video src=/a.mp4?sid=0123456789abcdef0123></video></p>",
     "<p>See <video src=/a.mp4?sid=0123456789abcdef0999></video></p>"),
    ("<p>See <a href=/map;jsessionid=0123456789ABCDEF0123456789ABCDEF>it</a></p>",
     "<p>See <a href=/map;jsessionid=FEDCBA98765432100123456789ABCDEF>it</a></p>"),
    ("<p>See <a href='/map?utm_source=a'>it</a></p>", "<p>See <a href=/map>it</a></p>"),
    ("<p>See <a href=/map>it</a></p>", "<p>See <a href=https://a.example:443/map>it</a></p>"),
    ("<p><a href=/f?sid=0123456789abcdef0123>it</a> is</p>", "<p><a href=/f>it</a> is</p>"),
    ("<p><img src=/a.png?v=1767225600> y</p>", "<p><img src=/a.png?v=1767225999> y</p>"),
    ("<p><img src=/a.png?t=0.8412345 alt=x> y</p>", "<p><img src=/a.png?t=0.1712345 alt=x> y</p>"),
    ("<p><img src='/a.png?w=9&X-Amz-Date=2&X-Amz-Signature=a1' alt=x> y</p>",
     "<p><img src='/a.png?w=9&X-Amz-Date=3&X-Amz-Signature=b2' alt=x> y</p>"),
    ("<p><img src='/a.png?Expires=1&Signature=a~&Key-Pair-Id=K' alt=x> y</p>",
     "<p><img src='/a.png?Expires=2&Signature=b~&Key-Pair-Id=K' alt=x> y</p>"),
    ("<p><a href='/f?id=1&_wpnonce=abc'>it</a> is</p>",
     "<p><a href='/f?id=1&_wpnonce=xyz'>it</a> is</p>"),
    ("<p>The dam</p>", "<p>The d\u00adam</p>"),
    ("<p>The dam</p>", "<p>The\u00a0dam</p>"),
    ("<p>caf\u00e9</p>", "<p>cafe\u0301</p>"),
    ("<p>The dam</p>", "<p  class=x>The   dam</p>"),
    ("<p>3 hours ago</p>", "<p>5 hours ago</p>"),
    ("<p>By A, <time datetime=2026-01-02>3 hours ago</time>, here</p>",
     "<p>By A, <time datetime=2026-01-02>2 days ago</time>, here</p>"),
    ("<form><input type=hidden name=csrf value=1></form>",
     "<form><input type=hidden name=csrf value=2></form>"),
    ("<script>a()</script>", "<script>b()</script>"),
    ("<!-- a -->", "<!-- b -->"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), NOISE)
def test_noise_is_of_no_kind(old: str, new: str) -> None:
    assert kinds(old, new) == set()


def test_several_kinds_are_found_at_once() -> None:
    old = "<p>It costs 10 euros, see <a href=/a>here</a> <img src=/1.png alt=x></p>"
    new = "<p>It costs 12 euros, see <a href=/b>here</a> <img src=/2.png alt=x></p>"
    assert kinds(old, new) == {"words", "links", "images"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<meta name=description content=a>", "<meta name=description content=b>"),
        ("<meta property=og:title content=a>", "<meta property=og:title content=b>"),
        ("<meta name=author content=Anna>", "<meta name=author content=Bela>"),
        ("<link rel=canonical href=/a>", "<link rel=canonical href=/b>"),
        ("", "<meta name=date content=2026-01-02>"),
    ],
)
def test_what_a_document_says_of_its_page_is_of_its_layout(old: str, new: str) -> None:
    assert kinds_of(made("", old), made("", new)) == {"layout"}


@pytest.mark.parametrize(
    ("content_type", "old", "new", "kind"),
    [
        ("text/plain", "one\n\ntwo", "one\n\nthree", "words"),
        ("text/plain", "one\n\ntwo", "two\n\none", "order"),
        ("text/plain", "one two\n\nthree", "one two three", "layout"),
        ("application/json", '{"a": 1}', '{"a": 2}', "words"),
        ("application/json", '{"a": 1}', '{"a":      1}', "layout"),
    ],
)
def test_texts_without_markup_have_kinds(content_type: str, old: str, new: str, kind: str) -> None:
    found = [channels(text.encode(), URL, content_type) for text in (old, new)]
    assert kinds_of(*found) == {kind}


def test_channels_come_back_from_their_bytes() -> None:
    found = made("<p>x</p>")
    assert Channels.from_bytes(found.to_bytes()) == found
    assert Channels.from_bytes(found.to_bytes()[1:]) is None
    assert Channels.from_bytes(None) is None
    assert found.made == made_by(NO_HINTS) != made_by(SelectorHints(("article",), ()))


_INNER = ("dam", "mill <b>wheel</b>", "<a href=/a>dam</a>", "<img src=/a alt=dam>", "dam<br>a")
_OUTER = ("<p>{}</p>", "<h2>{}</h2>", "<ul><li>{}<li>dam</ul>", "<pre>{}</pre>",
          "<blockquote>{}</blockquote>", "<table><tr><td>{}<td>x<tr><td>1<td>2")  # fmt: skip
_bodies = st.lists(
    st.builds(str.format, st.sampled_from(_OUTER), st.sampled_from(_INNER)), max_size=4
).map("".join)


@settings(max_examples=60)
@given(_bodies, _bodies)
def test_documents_differ_exactly_where_some_kind_does(old: str, new: str) -> None:
    assert bool(kinds(old, new)) == (delivered(old) != delivered(new))


def test_every_kind_has_its_pairs() -> None:
    pairs = (WORDS, LINKS, IMAGES, STATE, ORDER, LAYOUT)
    assert (len(pairs), min(map(len, pairs)) >= 10) == (len(CHANNELS), True)


async def test_a_large_page_is_read_in_the_parsers_process_with_the_same_result() -> None:
    body = PAGE.format(body="<p>See <a href=/x>it</a></p>" * 200, head="").encode()
    parser = Parser(inline_bytes=len(body))
    try:
        made = await parser.channels(body, URL, TYPE)
        lacking = await parser.channels(b"<div>" * 30_000, URL, TYPE)
    finally:
        await parser.close()
    assert made == channels(body, URL, TYPE)
    assert isinstance(lacking, Unparsable)


# -- what need not be made ------------------------------------------------------


def same_tags(old: str, new: str, head: tuple[str, str] = ("", "")) -> bool:
    pages = [
        (PAGE.format(body=body, head=said).encode(), TYPE)
        for body, said in zip((old, new), head, strict=True)
    ]
    found = have_same_tags(pages[0], pages[1])
    assert have_same_tags(pages[1], pages[0]) == found
    return found


@pytest.mark.parametrize(("old", "new"), WORDS)
def test_words_differ_between_the_same_tags(old: str, new: str) -> None:
    assert same_tags(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *LINKS, *IMAGES, *STATE, *VALUES,
        # Between tags, and no words.
        ("<select><option selected>S</select>", "<select><option selected>M</select>"),
        ("<p>x <textarea>S</textarea></p>", "<p>x <textarea>M</textarea></p>"),
        ("<p>it is <a href=/a>x</a></p>", "<p>it was <a href=/b>x</a></p>"),
        ("<p>it is <A HREF=/a>x</A></p>", "<p>it was <A HREF=/b>x</A></p>"),
        ("<p>a</p><iframe src=/a></iframe>", "<p>b</p><iframe src=/b></iframe>"),
        ("<p>a</p>", "<p>b</p><video src=/b></video>"),
        ("<p>a</p>", "<p>b</p><x-box>c</x-box>"),
        ("<p>a</p>", f"<p>{'b' * 70_000}</p>"),
        ("<p>a</p>", "<p>\0b</p>"),
    ],
)  # fmt: skip
def test_documents_are_made_where_more_than_words_may_differ(old: str, new: str) -> None:
    assert not same_tags(old, new)


def test_what_a_page_says_of_itself_is_no_word_between_tags() -> None:
    assert not same_tags("a", "b", ("<title>x</title>", "<title>y</title>"))
    assert not same_tags("a", "b", ("<meta name=date content=1>", "<meta name=date content=2>"))
    page, pdf = (b"<p>a</p>", TYPE), (b"%PDF a", "application/pdf")
    assert not have_same_tags(page, (page[0], "text/plain"))
    assert not have_same_tags(pdf, (b"%PDF b", "application/pdf"))
    assert have_same_tags(page, page)
    assert have_same_tags((b"", TYPE), (b"a", TYPE))


@settings(max_examples=100)
@given(_bodies, _bodies)
def test_same_tags_hold_the_same_links_and_images(old: str, new: str) -> None:
    assert not same_tags(old, new) or kinds(old, new) <= {"words", "order", "layout"}


@settings(max_examples=60)
@given(st.sampled_from([*WORDS, *LINKS, *IMAGES, *STATE, *VALUES, *ORDER, *LAYOUT, *NOISE]))
def test_another_version_changes_no_channel(pair: tuple[str, str]) -> None:
    pages = [PAGE.format(body=body, head="").encode() for body in pair]
    old, new = made(pair[0]), made(pair[1])
    for other in (old, new):
        found = channels(pages[1], URL, TYPE, other=other.to_bytes())
        assert (found.made, kinds_of(found, new)) == (new.made, frozenset())
    assert channels(pages[1], URL, TYPE, other=b"of another kind") == new


#: Stamps, breaks, boxes, images, moments, links in stamps, and words that are not ASCII.
MIXED = (
    "<p>One<br>two &amp; three <a href=/x?utm_source=1#y>four</a></p><hr><ul><li>&#x2611; done"
    "</li><li>é and e\u0301 <img src=/i.png alt='a lake'></li></ul><table><tr><th scope=col>a</th>"
    "<td colspan=2>Last updated: 3 May 2024, 10:15 <a href=/log>log</a></td></tr></table>"
    "<p>Read {} times</p><pre>a  b\n  c</pre><blockquote>So <em>it</em> is</blockquote><dl><dt>x"
    "</dt><dd>y</dd></dl>"
)


#: A change of these needs a new version of the channels.
PINNED = {
    False: ["165b92aca1f0", "bc4594235e4f", "832f5104a321"],
    True: ["d6d60ded183a", "657c957344c5", "b108f9ccebee"],
}


@pytest.mark.parametrize(
    "moment", ["", "<p>On <time datetime='2024-05-03'>3 May</time> it was.</p>"]
)
def test_stored_digests_are_compared_with_those_of_later_versions(moment: str) -> None:
    bodies = [MIXED.format(number) + moment for number in (1, 2, 30)]
    found = [made(body) for body in bodies]
    assert [hash_of(each) for each in found] == PINNED[bool(moment)]
    # What was read before does not matter.
    assert [made(body) for body in reversed(bodies)] == found[::-1]


def hash_of(found: Channels) -> str:
    return blake2b(found.to_bytes()[8:], digest_size=6).hexdigest()
