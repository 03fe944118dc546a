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

# -- what kinds of sites show ---------------------------------------------------------

SHOPS = {
    "tabs of links": has("<ul role=tablist><li role=presentation><a role=tab href=#d>Details</a><li role=presentation><a role=tab href=#r>Reviews (3)</a></ul><div role=tabpanel id=d><p>Made of oak.</p></div><div role=tabpanel id=r><p>It creaks a little.</p></div>", "Details", "Reviews (3)", "of oak", "creaks"),
    "was and is": has("<div class=price><del aria-label='old price'>€49.00</del> <ins>€39.00</ins> <span class=badge>-20 %</span></div>", "~~€49.00~~", "€39.00", "-20 %"),
    "price in parts": has("<div class=price><span class=currency>$</span><span class=int>1,299</span><sup class=frac>99</sup></div>", "1,299"),
    "swatches": has("<fieldset><legend>Colour</legend><label><input type=radio name=c checked> Oak</label><label><input type=radio name=c disabled> Walnut (sold out)</label></fieldset>", "Colour", "[x] Oak", "[ ] Walnut (sold out)"),
    "stock by store": has("<ul class=stores><li><strong>Harbour Street</strong> <span>4 in stock</span><li><strong>Mill Lane</strong> <span>none left</span></ul>", "**Harbour Street** 4 in stock", "none left"),
    "delivery": has("<dl class=delivery><div><dt>Delivery</dt><dd>2 to 4 working days</dd></div><div><dt>Returns</dt><dd>30 days</dd></div></dl>", "Delivery", "2 to 4 working days", "30 days"),
    "size chart": has("<table><caption>Sizes in cm</caption><tr><th>Size<th>Chest<tr><td>M<td>96–101<tr><td>L<td>102–107</table>", "Sizes in cm", "| M | 96–101 |"),
    "rating": has("<p><span role=img aria-label='4.6 out of 5 stars'>★★★★★</span> from 213 buyers</p>", "213 buyers"),
}  # fmt: skip

FORUMS = {
    "post": has("<article class=post id=p42><header><a href=/u/ann>ann</a> <time datetime=2026-03-01>1 March</time></header><div class=body><p>Turn the valve to the left first.</p></div><footer><button>Like</button> 7</footer></article>", "Turn the valve to the left first."),
    "accepted": has("<div class='answer accepted-answer'><span class=vote-count>12</span><span class=check title='Accepted answer'>✔</span><div class=s-prose><p>Use the smaller wrench.</p></div></div>", "Use the smaller wrench."),
    "quoted reply": has("<div class=reply><blockquote><p>Which one?</p><cite>bob</cite></blockquote><p>The one with the red handle.</p></div>", "> Which one?", "red handle"),
    "poll": has("<div class=poll><h3>Which day?</h3><ul><li>Monday <span>12 votes</span><li>Friday <span>30 votes</span></ul></div>", "### Which day?", "Friday 30 votes"),
    "signature line": has("<div class=post-body><p>It leaks at the joint.</p><hr><p>Edited by ann: tape solved it.</p></div>", "leaks at the joint", "tape solved it"),
    "code in a post": has("<div class=post-body><p>Run this:</p><pre class=bbcode_code>valve --open 3</pre></div>", "```\nvalve --open 3\n```"),
    "spoiler": has("<div class=spoiler><button aria-expanded=false>Spoiler</button><div hidden class=spoiler-content><p>The gardener did it.</p></div></div>", "The gardener did it."),
}  # fmt: skip

GOVERNMENT = {
    "summary list": has("<dl class=govuk-summary-list><div class=govuk-summary-list__row><dt>Fee</dt><dd>£82.50</dd></div><div class=govuk-summary-list__row><dt>Paper form</dt><dd>£93</dd></div></dl>", "Fee", "£82.50", "£93"),
    "warning text": has("<div class=govuk-warning-text><span class=govuk-warning-text__icon aria-hidden=true>!</span><strong><span class=govuk-visually-hidden>Warning</span> You can be fined £1,000.</strong></div>", "You can be fined £1,000."),
    "inset": has("<div class=govuk-inset-text>You must apply by 31 January.</div>", "apply by 31 January"),
    "notification": has("<div role=region class=govuk-notification-banner><h2>Important</h2><p>The office is closed on 5 May.</p></div>", "closed on 5 May"),
    "steps": has("<ol class=step-nav><li><h3>Step 1: check</h3><p>Read the list.</p><li><h3>Step 2: send</h3><p>Post the form.</p></ol>", "Step 1: check", "Read the list.", "Post the form."),
    "contact": has("<div class=contact><h3>Office for Roads</h3><address>12 Dock Road<br>Hull HU1 1AA</address><p>Telephone: 01482 496 000<br>Textphone: 18001 01482 496 000</p></div>", "12 Dock Road", "HU1 1AA", "01482 496 000"),
    "hours": has("<table class=hours><tr><th scope=row>Monday<td>9am to 5pm<tr><th scope=row>Sunday<td>closed</table>", "| Monday | 9am to 5pm |", "closed"),
    "hours as list": has("<ul class=opening-hours><li><span>Mon–Fri</span> <span>9:00–17:00</span><li><span>Sat</span> <span>10:00–13:00</span></ul>", "Mon–Fri 9:00–17:00", "Sat 10:00–13:00"),
    "hours by microdata": has("<p>Open <time itemprop=openingHours datetime='Mo-Fr 09:00-17:00'>weekdays 9 to 5</time>.</p>", "weekdays 9 to 5"),
    "fees": has("<table><thead><tr><th>Permit<th>Up to 6 months<th>1 year</thead><tbody><tr><th>Car<td>£60<td>£110<tr><th>Second car<td>£90<td>£170</tbody><tfoot><tr><td colspan=3>Prices from 1 April</tfoot></table>", "| Car | £60 | £110 |", "Prices from 1 April"),
    "notes below a table": has("<table><tr><th>Zone<th>Fee<tr><td>A<td>£3*</table><p class=footnote>* £2 for residents</p>", "£3\\*", "£2 for residents"),
    "legal section": has("<section class=legislation><h4><span class=num>12.</span> Offences</h4><p><span class=num>(1)</span> A person who drops litter commits an offence.</p><p class=indent><span class=num>(a)</span> in a park,</p></section>", "Offences", "(1) A person who drops litter", "(a) in a park"),
}  # fmt: skip

CHANGELOGS = {
    "release": has("<section class=release><h2 id=v2-1-0>2.1.0 <small>2026-02-03</small></h2><h3>Fixed</h3><ul><li>Crash on empty input (<a href=/i/12>#12</a>)</ul></section>", "2.1.0", "2026-02-03", "### Fixed", "Crash on empty input", "/i/12"),
    "badges": has("<ul class=changes><li><span class='badge badge-new'>New</span> Dark mode<li><span class='badge badge-fix'>Fix</span> Print margins</ul>", "New Dark mode", "Fix Print margins"),
    "details of a release": has("<details><summary>1.9 (archived)</summary><ul><li>Last one for Windows 7</ul></details>", "1.9 (archived)", "Windows 7"),
    "commit list": has("<p><code>a1b2c3d</code> parser: accept tabs</p><p><code>e4f5a6b</code> docs: typo</p>", "`a1b2c3d` parser: accept tabs", "docs: typo"),
    "diff": has("<pre class=diff><span class=del>-limit = 5</span>\n<span class=ins>+limit = 8</span></pre>", "-limit = 5\n+limit = 8"),
    "checksums": has("<table><tr><td><a href=/f-2.1.tar.gz>f-2.1.tar.gz</a><td><code>9f86d081884c7d65</code></table>", "[f-2.1.tar.gz](https://h.example/f-2.1.tar.gz)", "9f86d081884c7d65"),
}  # fmt: skip

REFERENCES = {
    "signature": has("<dl class=method><dt id=m-open><code>open(path, mode='r')</code> → <a href=/File>File</a><dd><p>Open a file.</p><dl><dt>Raises<dd>OSError</dl></dl>", "`open(path, mode='r')`", "[File](https://h.example/File)", "Open a file.", "OSError"),
    "parameters": has("<table class=params><tr><th>Name<th>Type<th>Default<tr><td><code>limit</code><td>int<td>20</table>", "| `limit` | int | 20 |"),
    "synopsis with links": has("<pre class=synopsis><a href=/t/Win>Win</a> *win_new (void);</pre>", "Win *win_new (void);"),
    "deprecated": has("<div class=deprecated><p>Deprecated since 3.2: use win_make().</p></div>", "Deprecated since 3.2"),
    "endpoint": has("<div class=endpoint><span class=verb>GET</span> <code>/v1/orders/{id}</code></div><p>Returns one order.</p>", "GET `/v1/orders/{id}`", "Returns one order."),
    "status codes": has("<ul><li><code>200</code> – the order<li><code>404</code> – there is none</ul>", "`200` – the order", "there is none"),
    "languages in tabs": has("<div class=tabs><ul><li class=active><a href=#py data-toggle=tab>Python</a><li><a href=#sh data-toggle=tab>Shell</a></ul><div id=py class='tab-pane active'><pre>get(1)</pre></div><div id=sh class=tab-pane><pre>curl /1</pre></div></div>", "Python", "Shell", "get(1)", "curl /1"),
    "see also": has("<p class=seealso><b>See also</b> <a href=/close>close</a>, <a href=/read>read</a></p>", "See also", "/close)", "/read)"),
    "enum": has("<table><tr><td>RED = 1<td>stop<tr><td>GREEN = 2<td>go</table>", "GREEN = 2", "go"),
}  # fmt: skip

RECIPES = {
    "ingredients": has("<ul class=ingredients><li><label><input type=checkbox> 200 g flour</label><li><label><input type=checkbox> ½ tsp salt</label></ul>", "200 g flour", "½ tsp salt"),
    "amounts in spans": has("<ul><li><span class=amount>2</span> <span class=unit>cups</span> <span class=name>milk</span></ul>", "2 cups milk"),
    "times": has("<div class=recipe-times><div><span>Prep</span> <span>20 min</span></div><div><span>Cook</span> <span>1 h 10 min</span></div></div>", "Prep 20 min", "1 h 10 min"),
    "method": has("<ol class=instructions><li>Mix the flour.<li><p>Bake for 40 minutes.</p><p class=tip>Cover it if it browns.</p></ol>", "Mix the flour.", "Bake for 40 minutes.", "Cover it if it browns."),
    "nutrition": has("<table class=nutrition><tr><th>Energy<td>310 kcal<tr><th>Fat<td>11 g</table>", "310 kcal", "11 g"),
    "servings": has("<p>Serves <input type=number value=4 min=1> people</p>", "Serves 4 people"),
    "allergens": has("<p class=allergens>Contains <strong>wheat</strong>, <strong>milk</strong>.</p>", "Contains **wheat**, **milk**."),
}  # fmt: skip

EVENTS = {
    "date in parts": has("<div class=event><div class=date><span class=day>14</span> <span class=month>May</span></div><h3><a href=/e/1>Harbour concert</a></h3><p>Doors at 19:30, £12</p></div>", "14 May", "Harbour concert", "Doors at 19:30, £12"),
    "timetable": has("<table class=timetable><tr><th>Quay<th>Dep.<tr><td>North<td><time>07:15</time><tr><td>South<td><time>07:40</time></table>", "| North | 07:15 |", "07:40"),
}  # fmt: skip

MEDIA = {
    "frame": has("<p><iframe src=/walk width=560 height=315 title='A walk'></iframe></p>", "[A walk](https://h.example/walk)"),
    "frame without a name": has("<iframe src='https://player.example/v/7?t=1'></iframe>", "[iframe](https://player.example/v/7?t=1)"),
    "frame loaded later": has("<div><iframe src=about:blank data-src=/walk></iframe></div>", "(https://h.example/walk)"),
    "frame with a label": has("<figure><iframe src=/walk aria-label='A  walk'></iframe><figcaption>By the sea</figcaption></figure>",
                              "[A walk](https://h.example/walk)", "By the sea"),
    "frame in a sentence": has("<p>Here it is: <iframe src=/walk title=Walk>None</iframe>.</p>", "Here it is: [Walk](https://h.example/walk) .", never=("None",)),
    "video": has("<video src=/w.mp4 controls title='A *walk*'>Your browser is old.</video>", "[A \\*walk\\*](https://h.example/w.mp4)",
                 never=("browser",)),
    "video of sources": has("<p><video controls><source src=/w.webm type=video/webm><source src=/w.mp4></video></p>", "[video](https://h.example/w.webm)",
                            never=("w.mp4",)),
    "video with a fallback": has("<video controls>See <a href=/w.mp4>the file</a></video>", "[video](https://h.example/w.mp4)"),
    "video in a figure": has("<figure><video src=w.mp4></video><figcaption>By the sea</figcaption></figure>",
                             "[video](https://h.example/a/b/w.mp4)", "By the sea"),
    "audio": has("<p>Listen: <audio controls src='/w.mp3?a=1&amp;b=2'></audio></p>", "Listen: [audio](https://h.example/w.mp3?a=1&b=2)"),
    "audio of sources": has("<audio controls><source src=/w.ogg><source src=/w.mp3></audio>", "[audio](https://h.example/w.ogg)"),
    "embed": has("<p><embed src=/w.pdf type=application/pdf title='The paper'></p>", "[The paper](https://h.example/w.pdf)"),
    "embed without a name": has("<div><embed src=/w.svg></div>", "[embed](https://h.example/w.svg)"),
    "object": has("<object data=/w.pdf type=application/pdf>No reader for it.</object>", "[object](https://h.example/w.pdf)",
                  never=("reader",)),
    "object with a name": has("<p><object data=/w.svg aria-label='A plan'></object></p>", "[A plan](https://h.example/w.svg)"),
    "object of parameters": has("<object><param name=movie value=/w.swf><embed src=/w2.swf></object>", "(https://h.example/w.swf)",
                                never=("w2.swf",)),
    "areas": has("<p><img src=/p.png usemap=#m alt=Map><map name=m><area href=/n alt=North><area href=/s alt=South></map></p>",
                 "[North](https://h.example/n) [South](https://h.example/s)"),
    "area with a title": has("<img src=/p.png alt=Map usemap=#m><map name=m><area shape=rect href='n/' title='The north'></map>",
                             "[The north](https://h.example/a/b/n/)"),
    "area without a place": has("<p>The map: <img src=/p.png alt=Map><map name=m><area nohref alt=Sea></map></p>",
                                "![Map](https://h.example/p.png)", never=("Sea",)),
    "in a link": has("<p><a href=/t>The walk <video src=/w.mp4></video></a></p>", "[The walk](https://h.example/t)", never=("w.mp4",)),
    "in a cell": has("<table><tr><th>Day<th>Film<tr><td>One<td><video src=/1.mp4 title=First></video></table>",
                     "| One | [First](https://h.example/1.mp4) |"),
    "in an item": has("<ul><li>One <audio src=/1.mp3></audio><li>Two <audio src=/2.mp3></audio></ul>",
                      "- One [audio](https://h.example/1.mp3)\n- Two [audio](https://h.example/2.mp3)"),
    "blank": has("<p>Before <iframe src=about:blank title=Blank></iframe>it</p>", "Before it", never=("Blank",)),
    "data": has("<p>Before <embed src='data:text/html,x' title=Data>it</p>", "Before it", never=("Data",)),
    "a script": has("<p>Before <iframe src='javascript:x()' title=Script></iframe>it</p>", "Before it", never=("Script",)),
    "tracker": has("<p>Before <iframe src='https://www.googletagmanager.com/ns.html?id=1' title=Tag></iframe>it</p>", "Before it",
                   never=("Tag",)),
    "advert": has("<p>Before <iframe src=/show title=Advertisement></iframe>it</p>", "Before it", never=("dvert",)),
    "advert by name": has("<p>Before <iframe src=/show class=ad-banner></iframe>it</p>", "Before it", never=("show",)),
    "of one pixel": has("<p>Before <iframe src=/x height=1 width=1></iframe><embed src=/y width=0px>it</p>", "Before it", never=("/x", "/y")),
    "hidden": has("<p>Before <video src=/x style='display: none'></video><audio hidden src=/y></audio><object data=/z style="
                  "'Visibility:hidden'></object>it</p>", "Before it", never=("/x", "/y", "/z")),
}  # fmt: skip

KINDS: Final[Mapping[str, Mapping[str, Case]]] = {
    "attributes": ATTRIBUTES,
    "controls": CONTROLS,
    "notes": NOTES,
    "places": PLACES,
    "formatting": FORMATTING,
    "commonmark": COMMONMARK,
    "names": NAMES,
    "shops": SHOPS,
    "forums": FORUMS,
    "government": GOVERNMENT,
    "changelogs": CHANGELOGS,
    "references": REFERENCES,
    "recipes": RECIPES,
    "events": EVENTS,
    "media": MEDIA,
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
