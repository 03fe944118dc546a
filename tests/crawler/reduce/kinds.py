"""What pages show by attributes, controls, notes, hidden places and formatting, by kind.

Each case is markup, what its document must have, and what it must not have, as Markdown and as
text; ``None`` for what is not looked at.
"""

# ruff: noqa: E501  # markup is read best on one line

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

SENTENCE: Final = (
    "The committee met on Tuesday, heard both sides, and put the question off once more. "
)


class Case(NamedTuple):
    """Markup, texts that its document has, and texts that it has not."""

    html: str
    markdown: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    html_has: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def has(html: str, *markdown: str, never: tuple[str, ...] = ()) -> Case:
    return Case(html, markdown=markdown, never=never)


ATTRIBUTES = {
    "tel": has("<p>Call <a href='tel:+441234'>us</a> now.", "[us](tel:+441234)"),
    "mailto": has("<p>Write <a href='mailto:a@b.example?subject=x'>us</a>.", "(mailto:a@b.example?"),
    "sms": has("<p>Text <a href='sms:+441234'>us</a> now.", "[us](sms:+441234)"),
    "geo": has("<p>Find <a href='geo:1.5,2.5'>us</a> here.", "[us](geo:1.5,2.5)"),
    "link": has("<p>The <a href='/b/report.pdf'>report</a> is out.", "(https://h.example/b/report.pdf)"),
    "alt": has("<p>See <img src=/p.png alt='A red door'> here.", "![A red door](https://h.example/p.png)"),
    "figure": has("<figure><img src=/p.png alt='A door'><figcaption>Fig. 1</figcaption></figure>",
                  "![A door](https://h.example/p.png)", "Fig. 1"),
    "srcset": has("<p>See <img srcset='/p1.png 1x, /p2.png 2x' alt=Door> here.",
                  "![Door](https://h.example/p1.png)"),
    "lazy set": has("<p>See <img src='data:x' data-srcset='/p1.png 100w' alt=Door> here.", "/p1.png)"),
    "ticked": Case("<p><label><input type=checkbox checked> Gift wrap</label></p>",
                   ("[x] Gift wrap",), ("☑ Gift wrap",), ("checked",)),
    "not ticked": Case("<p><label><input type=checkbox> Gift wrap</label></p>",
                       ("[ ] Gift wrap",), ("☐ Gift wrap",)),
    "radio": Case("<p><input type=radio name=c> Red <input type=radio name=c checked> Blue</p>",
                  ("[ ] Red [x] Blue",), ("☐ Red ☑ Blue",)),
    "tasks": Case("<ul><li><input type=checkbox checked disabled> Built<li><input type=checkbox "
                  "disabled> Tested</ul>", ("- [x] Built\n- [ ] Tested",), ("☑ Built\n☐ Tested",)),
    "value": has("<p>Total <input value='42.50' readonly> EUR</p>", "Total 42.50 EUR"),
    "number": has("<p><label for=q>Left</label><input type=number id=q value=7></p>", "Left 7"),
    "hidden value": has("<p>Total <input type=hidden value=s3cret> here</p>", "Total here",
                        never=("s3cret",)),
    "password": has("<p>Key <input type=password value=s3cret> here</p>", "Key here", never=("s3cret",)),
    "meter": has("<p>Seats taken: <meter value=3 max=5></meter> of 5</p>", "taken: 3 of 5"),
    "meter with words": has("<p>Seats: <meter value=3 max=5>3 of 5</meter></p>", "Seats: 3 of 5"),
    "progress": has("<p>Funded: <progress value=70 max=100></progress> %</p>", "Funded: 70 %"),
    "output": has("<p>Sum: <output>12</output> points</p>", "Sum: 12 points"),
    "selected": has("<p>Size <select><option>S<option selected>M<option>L</select></p>", "Size M",
                    never=("Size S", "L")),
    "groups": has("<p>Size <select><optgroup label=a><option>Small<optgroup label=b><option>Big<option "
                  "selected>Huge</select></p>", "Size Huge", never=("Small", "Big")),
    "first of groups": has("<p>Size <select><optgroup label=a><option>Small<option>Big</select></p>",
                           "Size Small", never=("Big",)),
    "ticked by role": Case("<div role=checkbox aria-checked=true>Gift wrap for all of them</div>",
                           ("☑ Gift wrap",), ("☑ Gift wrap",)),
    "switched off": Case("<p>Gift wrap for all: <span role=switch aria-checked=false></span></p>",
                         ("for all: ☐",), ("for all: ☐",)),
    "range": has("<p>The most is <input type=range value=30> crowns</p>", "most is 30 crowns"),
    "image button": has("<p>Now <input type=image alt='Order it' src=/b.png> here</p>", "Now Order it here"),
    "first option": has("<p>Size <select><option>Small<option>Huge</select></p>", "Size Small",
                        never=("Huge",)),
}  # fmt: skip

CONTROLS = {
    "sold out": has("<div><button disabled>Sold out</button></div>", "Sold out"),
    "price and button": has("<div><span>$9.99</span> <button>Add to cart</button></div>",
                            "$9.99 Add to cart"),
    "price in a button": has("<div><button>Buy for <b>$9.99</b></button></div>", "Buy for **$9.99**"),
    "faq": has("<div><button aria-expanded=false>How long is it valid?</button><div>A year.</div></div>",
               "How long is it valid?", "A year."),
    "faq in a heading": has("<h3><button>How long is it valid?</button></h3><p>A year.</p>",
                            "### How long is it valid?", "A year."),
    "faq of blocks": has("<button><div>How long is it valid?</div></button><div>A year.</div>",
                         "How long is it valid?", "A year."),
    "tabs": has("<div role=tablist><button role=tab>Details</button><button role=tab>Reviews</button>"
                "</div><div role=tabpanel><p>Made of oak.</p></div>", "Details\n", "Reviews\n", "of oak"),
    "tabs in a list": has("<ul class='nav nav-tabs' role=tablist><li role=presentation><button role=tab>Details"
                          "</button><li><button role=tab>Reviews</button></ul><div role=tabpanel><p>Made of oak."
                          "</p></div>", "Details\n", "Reviews\n", "of oak"),
    "choices in a list": has("<ul><li><label><input type=radio name=s>Small</label><li><label><input type=radio "
                             "name=s checked>Large</label></ul>", "[ ] Small\n", "[x] Large"),
    "tabs by labels": has("<input type=radio name=t id=a checked><label for=a>Details</label><input "
                          "type=radio name=t id=b><label for=b>Reviews</label><p>Made of oak.</p>",
                          "Details", "Reviews", never=("DetailsReviews",)),
    "terms": has("<textarea readonly>1. No refund.\n2. No *returns*.</textarea>",
                 "1\\. No refund.  \n2\\. No \\*returns\\*."),
    "in a sentence": has("<p>Press <button>OK</button> and wait.</p>", "Press OK and wait."),
    "button of input": has("<div>$5 <input type=submit value='Out of stock'></div>", "$5 Out of stock"),
    "summary": has("<details><summary>Ingredients</summary><p>Flour, salt.</p></details>",
                   "Ingredients", "Flour, salt."),
    "labels": has("<p><label>Weight</label><output>3 kg</output></p>", "Weight 3 kg"),
    "many": has("<p><button>Red</button><button>Blue</button></p>", "Red\n\nBlue"),
    "copy of code": has("<pre><button>Copy</button><code>make all</code></pre>", "```\nmake all\n```",
                        never=("Copy",)),
}  # fmt: skip

NOTES = {
    "warning": has("<aside class=warning><p>Never unplug it.</p></aside>", "Never unplug it."),
    "docutils": has("<aside class='admonition note'><p class=admonition-title>Note</p><p>Never unplug "
                    "it.</p></aside>", "Note", "Never unplug it."),
    "old docutils": has("<div class='admonition tip'><p class=admonition-title>Tip</p><p>Never unplug "
                        "it.</p></div>", "Tip", "Never unplug it."),
    "role": has("<aside role=note>Never unplug it.</aside>", "Never unplug it."),
    "section": has("<section role=note><p>Never unplug it.</p></section>", "Never unplug it."),
    "devsite": has("<aside class=caution><strong>Caution:</strong><span> Never unplug it.</span></aside>",
                   "**Caution:** Never unplug it."),
    "callout": has("<aside class='callout callout--tip'>Never unplug it.</aside>", "Never unplug it."),
    "alert": has("<aside class='alert alert-danger' role=alert>Never unplug it.</aside>",
                 "Never unplug it."),
    "list": has("<aside class=info><ul><li>Never unplug it.</ul></aside>", "- Never unplug it."),
    "footnote": has("<aside class='footnote brackets' role=doc-footnote><span>[1]</span><p>Never unplug "
                    "it.</p></aside>", "Never unplug it."),
    "footnotes by role": has("<aside role=doc-endnotes><ol><li>Never unplug it.</ol></aside>",
                             "Never unplug it."),
    "footnotes by class": has("<aside class='footnote-list'><p>Never unplug it.</p></aside>",
                              "Never unplug it."),
    "endnote": has("<aside role=doc-endnote>Never unplug it.</aside>", "Never unplug it."),
    "errata": has("<aside role=doc-errata><p>Never unplug it.</p></aside>", "Never unplug it."),
    "example": has("<aside class=example><p>Never unplug it.</p></aside>", "Never unplug it."),
    "citation": has("<aside class='citation-list'><p>Never unplug it.</p></aside>",
                    "Never unplug it."),
    "topic": has("<aside class=topic><p class=topic-title>Safety</p><p>Never unplug it.</p></aside>",
                 "Safety", "Never unplug it."),
    "quote in a forum": has("<aside class='quote no-group' data-post=1><div class=title>ann:</div><blockquote>"
                            "<p>Never unplug it.</p></blockquote></aside>", "> Never unplug it."),
    "pull quote": has("<aside class=pullquote><p>Never unplug it.</p></aside>", "Never unplug it."),
    "preview of a link": has("<aside class='onebox allowlistedgeneric'><article><h3><a href=/b>Lamps</a></h3><p>"
                             "Never unplug it.</p></article></aside>", "Never unplug it."),
    "correction": has("<aside class=correction><p>Never unplug it.</p></aside>", "Never unplug it."),
    "note in the margin": has("<aside class=sidenote>Never unplug it.</aside>", "Never unplug it."),
    "blockquote": has("<blockquote class=note><p>Never unplug it.</p></blockquote>",
                      "> Never unplug it."),
    "prefix": has("<aside class=my-important>Never unplug it.</aside>", "Never unplug it."),
}  # fmt: skip

PLACES = {
    "shadow root": has("<x-card><template shadowrootmode=open><p>The price is 7.</p></template></x-card>",
                       "The price is 7."),
    "closed": has('<x-card><template shadowrootmode="closed" shadowrootclonable><p>The price is 7.</p>'
                  "</template></x-card>", "The price is 7."),
    "shadow in shadow": has("<x-a><template shadowrootmode=open><x-b><template shadowrootmode=open>The "
                            "price is 7.</template></x-b></template></x-a>", "The price is 7."),
    "shadow with slot": has("<x-a><template shadowrootmode=open><style>p{}</style><h3>Price</h3><slot>"
                            "</slot></template><p>It is 7.</p></x-a>", "### Price", "It is 7."),
    "template": has("<template><p>The price is 8.</p></template><p>It is 7.</p>", "It is 7.",
                    never=("price is 8",)),
    "template in shadow": has("<x-a><template shadowrootmode=open><template>no</template><p>The price "
                              "is 7.</p></template></x-a>", "The price is 7.", never=("no\n",)),
    "until found": has("<div hidden=until-found><p>The price is 7 in all.</p></div>", "price is 7"),
    "tab panel": has("<div role=tabpanel hidden><p>The price is 7 in all.</p></div>", "price is 7"),
    "tab pane": has("<div class='tab-pane' aria-hidden=true><p>The price is 7 in all.</p></div>",
                    "price is 7"),
    "details": has("<details><summary>Costs</summary><p>The price is 7 in all.</p></details>", "Costs",
                   "price is 7"),
    "open dialog": has("<dialog open><p>The price is 7 in all.</p></dialog>", "price is 7"),
    "closed dialog": has("<dialog><p>The price is 8.</p></dialog><p>It is 7.</p>", "It is 7.",
                         never=("price is 8",)),
    "noscript": has("<noscript><p>The price is 7 in all.</p></noscript>", "price is 7"),
    "behind an iframe in noscript": has("<noscript><iframe src=/t height=0 /></noscript><p>The price is 7 in "
                                        "all.</p>", "price is 7"),
    "behind a style in noscript": has("<noscript><style>p{}</noscript><p>The price is 7 in all.</p>", "is 7"),
    "behind a comment in noscript": has("<noscript><!-- no > </noscript><p>The price is 7 in all.</p>", "is 7"),
    "streamed by React": has('<div><!--$?--><template id="B:0"></template><!--$--><p>Wait.</p><!--/$--><!--/$-->'
                             '</div><p>So it is.</p><div hidden id="S:0"><p>The price is <template id="P:1">'
                             '</template> in all.</p></div><div hidden id="S:1"><div><b>7</b></div></div><script>'
                             '$RC("B:0","S:0");$RS("S:1","P:1")</script>', "The price is", "**7**", "in all.",
                             never=("Wait.",)),
}  # fmt: skip

TEX = "<annotation encoding='application/x-tex'>x^2</annotation>"
MATH = f"<math><semantics><msup><mi>x</mi><mn>2</mn></msup>{TEX}</semantics></math>"
STYLED = MATH.replace("x^2", "{\\displaystyle x^2}")
FORMATTING = {
    "power": Case("<p>It is 10<sup>2</sup> m.", ("10<sup>2</sup> m",), ("10^2 m",), ("10<sup>2</sup>",)),
    "index": Case("<p>H<sub>2</sub>O and log<sub>2</sub>8.", ("H<sub>2</sub>O",), ("H2O and log_2 8.",)),
    "fraction": Case("<p>Add 1<sup>1</sup>/<sub>23</sub> cups.", (), ("Add 1 1/23 cups.",)),
    "fraction slash": Case("<p>Add <sup>1</sup>\u2044<sub>23</sub> cups.", (), ("Add 1/23 cups.",)),
    "no fraction": Case("<p><sup>14</sup><sub>6</sub>C", (), ("^14_6 C",)),
    "ordinal": Case("<p>The 1<sup>st</sup> day.", ("1<sup>st</sup>",), ("The 1st day.",)),
    "exponent of words": Case("<p>Now e<sup>x+1</sup>y.", (), ("e^(x+1)y.",)),
    "note": Case("<p>So it is.<sup><a href=#n>[1]</a></sup>", (), ("So it is.[1]",)),
    "TeX": Case(f"<p>So {MATH} is.", ("So $x^2$ is.",), ("So $x^2$ is.",)),
    "KaTeX": has(f"<p>So <span class=katex><span class=katex-mathml>{MATH}</span><span class=katex-html "
                 "aria-hidden=true>x2</span></span> is.", "So $x^2$ is."),
    "KaTeX without MathML": has("<p>So <span class=katex><span class=katex-html>x</span></span> is.",
                                "So x is."),
    "MathJax 2": has("<p>So <span class=MathJax_Preview>x2</span><span class=MathJax id=M1>x2</span>"
                     "<script type=math/tex id=M2>x^2</script> is.", "So $x^2$ is."),
    "MathJax 3": has(f"<p>So <mjx-container class=MathJax><mjx-math aria-hidden=true>x2</mjx-math>"
                     f"<mjx-assistive-mml>{MATH}</mjx-assistive-mml></mjx-container> is.",
                     "So $x^2$ is."),
    "MediaWiki": has("<p>So <span class=mwe-math-element><span class='mwe-math-mathml-inline' "
                     f"style='display:none'>{STYLED}</span><img "
                     "src=/m.svg class=mwe-math-fallback-image-inline alt='x^2'></span> is.",
                     "So $x^2$ is."),
    "MathML": has("<p>So <math><mfrac><mn>1</mn><msup><mi>x</mi><mn>10</mn></msup></mfrac></math> is.",
                  "So $\\frac{1}{x^{10}}$ is."),
    "displayed": has("<p>So <math display=block><msub><mi>x</mi><mn>1</mn></msub></math>", "So $$x_1$$"),
    "struck out": Case("<p>Was <s>9</s>, <del>8</del>, is 7.", ("Was ~~9~~, ~~8~~, is 7.",),
                       (), ("<del>9</del>",)),
    "code": has("<pre>if x:\n    y()\n\tz()</pre>", "```\nif x:\n    y()\n\tz()\n```"),
    "listing": has("<listing>a:\n  - b</listing>", "```\na:\n  - b\n```"),
    "value": Case("<ol><li>one<li value=5>two<li>three</ol>", ("1. one\n5) two\n6) three",), (),
                  ('<li value="5">two',)),
    "start": Case("<ol start=3><li>one<li>two</ol>", ("3. one\n4. two",), (), ('<ol start="3">',)),
    "reversed": Case("<ol reversed><li>one<li>two</ol>", ("2. one\n1) two",), (), ("<ol reversed>",)),
    "letters": Case("<ol type=a start=2><li>one<ul><li>x</ul><li>two</ol>", ("- b. one\n  - x\n- c. two",), (),
                    ('<ol type="a" start="2">',)),
    "Roman": Case("<ol type=I start=8><li>one<li>two<p>p</ol>", ("- VIII. one\n- IX. two\n\n  p",)),
    "power in code": has("<p>So <code>x<sup>2</sup></code>.", "`x^2`"),
    "quotation": Case("<p>She said <q>no</q>.", ("She said \u201cno\u201d.",),
                      ("She said \u201cno\u201d.",), ("<q>no</q>",)),
    "ruby": Case("<p><ruby>漢<rt>kan</rt>字<rt>ji</rt></ruby>", ("漢(kan)字(ji)",), ("漢(kan)字(ji)",)),
    "ruby with brackets": Case("<p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", ("漢(kan)",),
                               ("漢(kan)",), never=("((",)),
    "soft hyphen": Case("<p>Donau&shy;dampf<wbr>schiff", ("Donaudampfschiff",), ("Donaudampfschiff",)),
}  # fmt: skip

COMMONMARK = {
    "beside CJK": has("<p>これは<b>「強調」</b>です。", "これは<strong>「強調」</strong>です。"),
    "punctuation": has("<p><b>Note:</b>this, foo<i>(bar)</i>.", "<strong>Note:</strong>this, foo<em>(bar)"),
    "in a word": has("<p>un<b>frigging</b>able", "un**frigging**able"),
    "one after the other": has("<p><b>a</b><i>b</i>", "**a**<em>b</em>"),
    "in itself": has("<p><i>a <i>b</i> c</i>", "*a b c*"),
    "struck out in a word": has("<p>a<del><b>x</b></del>b", "a<del><strong>x</strong></del>b"),
    "parentheses": has("<p>The road is described there: <a href='/w/A_(b)'>x</a>", "[x](https://h.example/w/A_(b))"),
    "one parenthesis": has("<p>The road is described there: <a href='/w/A(b'>x</a>", "[x](https://h.example/w/A\\(b)"),
    "coded parentheses": has("<p>The road is described there: <a href='/w/A%28b%29'>x</a>", "(https://h.example/w/A%28b%29)"),
    "reference in a target": has("<p>The road is described there: <a href='/?a=1&amp;copy;=2'>x</a>", "?a=1&amp;copy;=2)"),
    "table in an item": has("<ul><li>one<table><tr><th>A<th>B<tr><td>1<td>2</table><li>two</ul>",
                            "- one\n\n  | A | B |\n  | --- | --- |\n  | 1 | 2 |\n- two"),
    "table in a quote": has("<blockquote>one<table><tr><th>A<th>B<tr><td>1<td>2</table></blockquote>",
                            "> one\n>\n> | A | B |\n> | --- | --- |\n> | 1 | 2 |"),
    "numbers of lines": has("<pre><span class=lineno>8 </span>a = 1\n<span class=lineno>9 </span>b = 2"
                            "</pre>", "```\na = 1\nb = 2\n```"),
    "numbers of Hugo": has("<pre><code><span class=ln>1</span>a = 1\n<span class=ln>2</span>b = 2</code>"
                           "</pre>", "```\na = 1\nb = 2\n```"),
    "column of numbers": has("<table><tr><td class=gutter><pre>7\n8\n9</pre><td><pre>a\nb\nc</pre>"
                             "</table>", "```\na\nb\nc\n```", never=("7",)),
    "link behind a call": has("<p>Look!<a href='/b'>x</a>", "Look\\![x](https://h.example/b)"),
    "image behind a call": has("<p>Look!<img src='/b' alt=x>", "Look!![x](https://h.example/b)"),
    "numbers are code": has("<pre><span class=mi>1</span>\n<span class=mi>2</span>: x</pre>",
                            "```\n1\n2: x\n```"),
    "term in bold": has("<dl><dt><b>term</b><dd>what it is</dl>", "- **term**\n  - what"),
}  # fmt: skip

NAMES = {
    "term": has("<dl><dt id=GUC-MAX-SYNC-WORKERS-PER-SUBSCRIPTION>max_sync_workers<dd>The default is "
                "2.</dl>", "max_sync_workers", "The default is 2."),
    "heading": has("<h3 id=newsletter>The newsletter format</h3><p>It is plain text.</p>",
                   "### The newsletter format", "It is plain text."),
    "item": has("<ul><li id=social-sharing>A card has a border.</ul>", "A card has a border."),
    "cell": has("<table><tr><th id=sidebar>Part<th id=footer>Size<tr><td id=cookie>Door<td>80"
                "</table>", "| Part | Size |", "| Door | 80 |"),
    "section": has("<section class=cta-box><p>Write to Marsh Lane 4 about it.</p></section>",
                   "Marsh Lane 4"),
    "block": has("<div class=navigation-block><p>The road bends at Marsh Lane 4, by the mill.</p></div>",
                 "Marsh Lane 4"),
    "widget": has("<div class='widget banner-text'><p>The road bends at Marsh Lane 4.</p></div>",
                  "Marsh Lane 4"),
    "section id": has("<section id=cookies><h2>Cookies</h2><p>A cookie is a small text of a server.</p>"
                      "</section>", "## Cookies", "small text of a server"),
    "share price": has("<div id=share-price><p>The share closed at 7 crowns.</p></div>", "7 crowns"),
    "related work": has("<section id=related-work><h2>Related work</h2><p>Others have measured it, too."
                        "</p></section>", "## Related work", "Others have measured it"),
    "modal verbs": has("<section id=modal-verbs><h2>Modal verbs</h2><p>They have no third person form."
                       "</p></section>", "## Modal verbs", "no third person"),
}  # fmt: skip

KINDS: Final[Mapping[str, Mapping[str, Case]]] = {
    "attributes": ATTRIBUTES,
    "controls": CONTROLS,
    "notes": NOTES,
    "places": PLACES,
    "formatting": FORMATTING,
    "commonmark": COMMONMARK,
    "names": NAMES,
}

MENU: Final = "<ul><li><a href=/n>News</a><li><a href=/s>Sport</a><li><a href=/w>Weather</a></ul>"
Shell = Callable[[str], str]
#: Pages around a content.
SHELLS: Final[Mapping[str, Shell]] = {
    "bare": lambda content: content,
    "main": lambda content: f"<nav>{MENU}</nav><main>{content}</main><footer>{MENU}</footer>",
    "article": lambda content: (
        f"<header>{MENU}</header><article class=post><div class=entry-content>{content}</div>"
        f"</article><aside class=sidebar>{MENU}</aside>"
    ),
    "Sphinx": lambda content: (
        f"<div class=document><div class=bodywrapper><div class=body role=main><section id=q>{content}"
        f"</section></div></div><div class=sphinxsidebar role=navigation>{MENU}</div></div>"
    ),
    "docutils": lambda content: f"<main id=a-long-question>{content}</main>",
    "MediaWiki": lambda content: (
        "<div id=content class=mw-body role=main><div id=mw-content-text class=mw-body-content><div "
        f"class=mw-parser-output>{content}</div></div></div><div id=mw-navigation>{MENU}</div>"
    ),
    "shop": lambda content: (
        f"<header class=site-header>{MENU}</header><div id=main class=product-page><div "
        f"class=product-info>{content}</div></div><footer class=site-footer>{MENU}</footer>"
    ),
    "forum": lambda content: (
        f"<div class=navbar>{MENU}</div><div class=thread><div class=post><div class=author>Ann</div>"
        f"<div class=post-body>{content}</div></div></div><div class=footer>{MENU}</div>"
    ),
}


def page(shell: str, content: str, *, is_big: bool) -> str:
    """Return a page with that content between paragraphs, few of them or many."""
    before, after = (SENTENCE * 3, SENTENCE * 2) if is_big else (SENTENCE, SENTENCE)
    if is_big:
        after += f"</p><h2>More of it</h2><p>{SENTENCE * 6}</p>" * 8 + "<p>"
    inner = f"<h1>A long question</h1><p>{before}</p>{content}<p>{after}</p>"
    return f"<!doctype html><title>A long question</title><body>{SHELLS[shell](inner)}"


def lacks(
    case: Case, markdown: str, text: str, html: str, *, is_text_read: bool = True
) -> list[str]:
    """Return what a document lacks, or has although it should not."""
    missing = [f"Markdown lacks {it!r}" for it in case.markdown if it not in markdown]
    missing += [f"text lacks {it!r}" for it in case.text if is_text_read and it not in text]
    missing += [f"HTML lacks {it!r}" for it in case.html_has if it not in html]
    return missing + [f"has {it!r}" for it in case.never if it in markdown]
