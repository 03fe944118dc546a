"""Media reach the Markdown of a document as links to what they show or play."""

# ruff: noqa: E501  # markup is read best on one line

from typing import Final

import pytest

from freshet.crawler.reduce.document import document
from tests.crawler.reduce.kinds import page

URL: Final = "https://h.example/a/b/"
#: Variants of each element: markup, and what the Markdown has.
VARIANTS: Final = {
    "iframe": {
        "with srcdoc beside": ("<iframe srcdoc='<p>x' src=/f1 title=Walk></iframe>", '(https://h.example/f1)'),
        "relative to base": ("<iframe src='../f2'></iframe>", '(https://h.example/a/f2)'),
        "protocol relative": ("<iframe src='//player.example/f3'></iframe>", '(https://player.example/f3)'),
        "in a wrapper": ("<div class='embed-responsive embed-responsive-16by9'><iframe class=embed-responsive-item src=/f4></iframe></div>", '(https://h.example/f4)'),
        "WordPress embed": ("<figure class='wp-block-embed is-type-video'><div class=wp-block-embed__wrapper><iframe title='My talk' width=500 height=281 src='https://www.youtube.com/embed/abc?feature=oembed' frameborder=0 allowfullscreen></iframe></div></figure>", '[My talk](https://www.youtube.com/embed/abc?feature=oembed)'),
        "data-lazy-src": ("<iframe data-lazy-src='/f6' src='about:blank'></iframe>", '(https://h.example/f6)'),
        "in a list item": ('<ol><li>First<iframe src=/f7></iframe></li><li>Second</li></ol>', '(https://h.example/f7)'),
        "in a definition": ('<dl><dt>Map</dt><dd><iframe src=/f8 title=Map></iframe></dd></dl>', '[Map](https://h.example/f8)'),
        "in a blockquote": ('<blockquote><iframe src=/f9></iframe></blockquote>', '(https://h.example/f9)'),
        "percent widths": ("<p><iframe src=/f10 width='100%' height='400px' style='border:0' loading=lazy></iframe></p>", '(https://h.example/f10)'),
        "in details": ('<details><summary>Film</summary><iframe src=/f11 title=Film></iframe></details>', '[Film](https://h.example/f11)'),
        "amp": ('<noscript><iframe src=/f12 title=Map></iframe></noscript>', '(https://h.example/f12)'),
        "map of Google": ("<iframe src='https://www.google.com/maps/embed?pb=!1m18' width=600 height=450 title='Where we are'></iframe>", '[Where we are](https://www.google.com/maps/embed?pb=!1m18)'),
        "as a fallback of an object": ('<object><iframe src=/f14></iframe></object>', '(https://h.example/f14)'),
    },
    "video": {
        "poster": ('<video poster=/p.jpg src=/v1.mp4></video>', '(https://h.example/v1.mp4)'),
        "tracks": ('<video controls><source src=/v2.mp4><track src=/v2.vtt kind=captions label=English></video>', '(https://h.example/v2.mp4)'),
        "only a link": ('<video controls><p>No video? <a href=/v3.mp4>Download it</a>.</p></video>', '(https://h.example/v3.mp4)'),
        "data-src source": ('<video><source data-src=/v4.mp4 type=video/mp4></video>', '(https://h.example/v4.mp4)'),
        "label": ("<video src=/v5.mp4 aria-label='How it works'></video>", '[How it works](https://h.example/v5.mp4)'),
        "autoplay": ('<video autoplay muted loop playsinline><source src=v6.webm></video>', '(https://h.example/a/b/v6.webm)'),
        "in a heading": ('<h2>Film <video src=/v7.mp4></video></h2><p>Words after it.</p>', '(https://h.example/v7.mp4)'),
        "in a quote": ('<blockquote><p>See:</p><video src=/v8.mp4></video></blockquote>', '(https://h.example/v8.mp4)'),
        "WordPress": ("<figure class=wp-block-video><video controls src='/v9.mp4'></video><figcaption>The launch</figcaption></figure>", '(https://h.example/v9.mp4)'),
        "spaces": ("<video src=' /v 10.mp4 '></video>", 'https://h.example/v%2010.mp4'),
        "fragment": ("<video src='/v11.mp4#t=10,20'></video>", '(https://h.example/v11.mp4#t=10,20)'),
        "in a button": ('<div class=player><button>Play</button><video src=/v12.mp4></video></div>', '(https://h.example/v12.mp4)'),
    },
    "audio": {
        "sized": ("<audio src=/a1.mp3 style='width: 100%'></audio>", '(https://h.example/a1.mp3)'),
        "captioned": ('<figure><figcaption>Listen to the T-Rex:</figcaption><audio controls src=/a2.mp3><a href=/a2.mp3>Download audio</a></audio></figure>', '(https://h.example/a2.mp3)'),
        "WordPress": ("<!--[if lt IE 9]><script></script><![endif]--><audio class=wp-audio-shortcode id=audio-1-1 preload=none style='width: 100%;' controls><source type='audio/mpeg' src='/a3.mp3?_=1' /><a href='/a3.mp3'>a3.mp3</a></audio>", '/a3.mp3?_=1)'),
        "titled": ("<audio controls title='Episode 4'><source src=/a4.mp3></audio>", '[Episode 4](https://h.example/a4.mp3)'),
        "in a cell": ('<table><tr><th>Word<th>Sound<tr><td>Haus<td><audio src=/a5.ogg></audio></table>', '(https://h.example/a5.ogg)'),
        "in a definition": ('<dl><dt>Haus<dd><audio src=/a6.ogg></audio> a house</dl>', '(https://h.example/a6.ogg)'),
        "two": ('<p><audio src=/a7.ogg></audio><audio src=/a77.ogg></audio></p>', '(https://h.example/a77.ogg)'),
        "data": ('<audio data-src=/a8.mp3 controls></audio>', '(https://h.example/a8.mp3)'),
        "in a span": ('<p>It says <span class=sound><audio src=/a9.mp3></audio></span> so.</p>', '(https://h.example/a9.mp3)'),
        "MediaWiki": ("<span class=mw-tmh-player><audio controls preload=none data-mwtitle=Haus.ogg><source src='//upload.example/a10.ogg' type='audio/ogg'></audio></span>", '(https://upload.example/a10.ogg)'),
        "no controls class": ('<div class=podcast-player><audio src=/a11.mp3></audio></div>', '(https://h.example/a11.mp3)'),
    },
    "object": {
        "svg": ('<object type=image/svg+xml data=/o1.svg></object>', '(https://h.example/o1.svg)'),
        "pdf with link": ('<object data=/o2.pdf width=100% height=600><p>Get <a href=/o2.pdf>the file</a></p></object>', '(https://h.example/o2.pdf)'),
        "param src": ('<object><param name=src value=/o3.mov></object>', '(https://h.example/o3.mov)'),
        "flash": ("<object classid='clsid:D27CDB6E' width=425 height=344><param name='movie' value='/o4.swf'><param name=allowFullScreen value=true></object>", '(https://h.example/o4.swf)'),
        "param first": ('<object><param name=wmode value=opaque><param name=Movie value=/o5.swf></object>', '(https://h.example/o5.swf)'),
        "nested": ('<object data=/o6.swf><object data=/o66.png></object></object>', '(https://h.example/o6.swf)'),
        "with embed": ('<object><embed src=/o7.swf></object>', '(https://h.example/o7.swf)'),
        "with img": ("<object data=/o8.svg><img src=/o8.png alt='The plan'></object>", '(https://h.example/o8.svg)'),
        "figure": ('<figure><object data=/o9.svg></object><figcaption>Fig. 9</figcaption></figure>', '(https://h.example/o9.svg)'),
        "in a cell": ('<table><tr><td>One</td><td><object data=/o10.svg title=Ten></object></td></tr><tr><td>Two</td><td>x</td></tr></table>', '(https://h.example/o10.svg)'),
        "name attr": ('<p><object data=/o11.pdf name=paper></object></p>', '(https://h.example/o11.pdf)'),
        "graphviz of Sphinx": ('<div class=graphviz><object data=../_images/o12.svg type=image/svg+xml class=graphviz><p class=warning>digraph x</p></object></div>', '(https://h.example/a/_images/o12.svg)'),
        "nested only": ('<object><object data=/o13.swf></object></object>', '(https://h.example/o13.swf)'),
    },
    "embed": {
        "pdf": ('<embed src=/e1.pdf width=500 height=375 type=application/pdf>', '(https://h.example/e1.pdf)'),
        "quicktime": ('<embed type=video/quicktime src=movie.mov width=640 height=480>', '(https://h.example/a/b/movie.mov)'),
        "titled": ("<embed title='A title of my video' src='/e3.mp4'>", '[A title of my video](https://h.example/e3.mp4)'),
        "in a cell": ('<table><tr><td>A<td><embed src=/e4.svg><tr><td>B<td>b</table>', '(https://h.example/e4.svg)'),
        "in an item": ('<ul><li>A <embed src=/e5.svg><li>B</ul>', '(https://h.example/e5.svg)'),
        "in a figure": ('<figure><embed src=/e6.svg><figcaption>The plan</figcaption></figure>', '(https://h.example/e6.svg)'),
        "self-closed": ('<p>Look: <embed src=/e7.svg /> there.</p>', 'Look: [embed](https://h.example/e7.svg) there.'),
        "flashvars": ("<embed src=/e8.swf flashvars='file=x' allowscriptaccess=always>", '(https://h.example/e8.swf)'),
        "in a quote": ('<blockquote><embed src=/e9.svg></blockquote>', '(https://h.example/e9.svg)'),
        "protocol relative": ("<embed src='//www.example.org/e10'>", '(https://www.example.org/e10)'),
        "upper case": ('<EMBED SRC=/e11.mid AUTOSTART=false>', '(https://h.example/e11.mid)'),
        "in center": ('<center><embed src=/e12.mid></center>', '(https://h.example/e12.mid)'),
    },
    "area": {
        "rect": ("<img src=/p.png usemap=#m alt=Map><map name=m><area shape=rect coords='0,0,1,1' href=/r1 alt=One></map>", '[One](https://h.example/r1)'),
        "poly": ("<map name=m><area shape=poly coords='0,0,1,1,2,2' href=/r2 alt=Two></map><img src=/p.png usemap=#m alt=Map>", '[Two](https://h.example/r2)'),
        "default": ('<img src=/p.png usemap=#m><map name=m><area shape=default href=/r3 alt=Other></map>', '[Other](https://h.example/r3)'),
        "empty alt": ("<img src=/p.png usemap=#m alt=Map><map name=m><area href=/r4 alt=''></map>", '(https://h.example/r4)'),
        "aria": ('<img src=/p.png usemap=#m alt=Map><map name=m><area href=/r5 aria-label=Five></map>', '[Five](https://h.example/r5)'),
        "with words": ("<map name=m><p>All of our shops are listed in <a href=/r6a>a table of the towns</a><area href=/r6 alt='The shop'></p></map>", '(https://h.example/r6)'),
        "in a figure": ('<figure><img src=/p.png usemap=#m alt=Map><map name=m><area href=/r7 alt=Seven></map><figcaption>The map</figcaption></figure>', '[Seven](https://h.example/r7)'),
        "in a cell": ('<table><tr><td><img src=/p.png usemap=#m alt=Map><map name=m><area href=/r8 alt=Eight></map><td>b<tr><td>c<td>d</table>', '[Eight](https://h.example/r8)'),
        "mail": ("<img src=/p.png usemap=#m alt=Map><map name=m><area href='mailto:a@b.example' alt=Mail></map>", '[Mail](mailto:a@b.example)'),
        "fragment": ("<img src=/p.png usemap=#m alt=Map><map name=m><area href='#part' alt=Part></map>", 'Part'),
        "doxygen": ("<div class=dynheader>Collaboration diagram for X:</div><div class=dyncontent><div class=center><img src=c.png border=0 usemap=#m alt='Collaboration graph'></div><map name=m id=m><area shape=rect title='A base' alt='' coords='5,5,90,32'><area href=classB.html title='B class' alt='' coords='1,2,3,4'></map></div>", '[B class](https://h.example/a/b/classB.html)'),
        "in a paragraph": ('<p>Choose: <map name=m><area href=/r12 alt=Twelve></map> please.</p>', 'Choose: [Twelve](https://h.example/r12) please.'),
        "target": ("<map name=m><area target=_blank rel=noopener href='https://o.example/r13' alt='Their shop' ></map>", '[Their shop](https://o.example/r13)'),
    },
}  # fmt: skip
#: Media without words of their own around them.
WORDLESS: Final = {
    "list of sounds": ("<ul><li><audio src=/1.ogg></audio><li><audio src=/2.ogg></audio></ul>", "- [audio](https://h.example/1.ogg)\n- [audio](https://h.example/2.ogg)"),
    "table of films": ("<table><tr><td><video src=/1></video><td><video src=/2></video><tr><td><video src=/3></video><td><video src=/4></video></table>", "| [video](https://h.example/3) | [video](https://h.example/4) |"),
    "list of images": ("<ul><li><img src=/1.png alt=One><li><img src=/2.png alt=Two></ul>", "- ![One](https://h.example/1.png)\n- ![Two](https://h.example/2.png)"),
    "image in a quote": ("<blockquote><img src=/1.png alt=One></blockquote>", "> ![One](https://h.example/1.png)"),
    "image beside a button": ("<div><button>Play</button><img src=/1.png alt=One></div>", "![One](https://h.example/1.png)"),
}  # fmt: skip


def test_each_element_has_ten_variants() -> None:
    assert all(len(variants) >= 10 for variants in VARIANTS.values())


@pytest.mark.parametrize("shell", ["bare", "main", "shop"])
@pytest.mark.parametrize("element", VARIANTS)
def test_media_reach_the_markdown_with_their_targets(element: str, shell: str) -> None:
    assert missing(VARIANTS[element], shell) == []


@pytest.mark.parametrize("shell", ["bare", "main", "shop"])
def test_media_and_images_without_words_stay_between_paragraphs(shell: str) -> None:
    assert missing(WORDLESS, shell) == []


def missing(variants: dict[str, tuple[str, str]], shell: str) -> list[str]:
    """Return the names of the variants that the Markdown of a page lacks."""
    made = {
        name: document(page(shell, html, is_big=False).encode(), URL, "text/html").markdown
        for name, (html, _) in variants.items()
    }
    return [name for name, (_, wanted) in variants.items() if wanted not in made[name]]
