"""The laws of what is compared and delivered, on further pairs of pages of each kind."""

# ruff: noqa: E501  # markup is read best on one line

from collections import Counter
from typing import Final

import pytest

from freshet.crawler.reduce.channels import channels, kinds_of
from tests.crawler.reduce.kinds import SHELLS, page
from tests.crawler.reduce.test_document_laws import seen_in

URL: Final = "https://h.example/a/b/"
#: What readers see as changed: before and after.
CHANGES: Final = {
    'price in a list of buttons': ('<button>Buy for 12 EUR</button>', '<button>Buy for 14 EUR</button>'),
    'tab name in a label': ('<label for=t>Shipping</label><p id=t>By post in 3 days.</p>', '<label for=t>Delivery</label><p id=t>By post in 3 days.</p>'),
    'textarea terms': ('<textarea readonly>You may return it in 14 days.</textarea>', '<textarea readonly>You may return it in 30 days.</textarea>'),
    'aside warning': ('<aside class=warning><p>Do not use it with acids.</p></aside>', '<aside class=warning><p>Do not use it with alkalis.</p></aside>'),
    'shadow root': ('<x-y><template shadowrootmode=open><p>Version 3.1 is current.</p></template></x-y>', '<x-y><template shadowrootmode=open><p>Version 3.2 is current.</p></template></x-y>'),
    'hidden until found': ('<div hidden=until-found><p>The deposit is 50 EUR.</p></div>', '<div hidden=until-found><p>The deposit is 80 EUR.</p></div>'),
    'tab panel': ('<div role=tabpanel hidden><p>Weight is 3 kg.</p></div>', '<div role=tabpanel hidden><p>Weight is 4 kg.</p></div>'),
    'exponent': ('<p>It has 10<sup>2</sup> parts.</p>', '<p>It has 10<sup>3</sup> parts.</p>'),
    '102 to 10^2': ('<p>It has 102 parts.</p>', '<p>It has 10<sup>2</sup> parts.</p>'),
    'half': ('<p>Use 1<sup>1</sup>/<sub>2</sub> cups.</p>', '<p>Use 1<sup>1</sup>/<sub>3</sub> cups.</p>'),
    'struck': ('<p>The fee is 20 EUR.</p>', '<p>The fee is <s>20</s> EUR.</p>'),
    'ins del': ('<p>The fee is 20 EUR.</p>', '<p>The fee is <del>20</del><ins>25</ins> EUR.</p>'),
    'indentation': ('<pre>if a:\n    b()\n    c()</pre>', '<pre>if a:\n    b()\nc()</pre>'),
    'YAML indentation': ('<pre>a:\n  b: 1\n  c: 2</pre>', '<pre>a:\n  b: 1\nc: 2</pre>'),
    'li value': ('<ol><li value=3>Three bolts<li>Nut</ol>', '<ol><li value=4>Three bolts<li>Nut</ol>'),
    'ol start': ('<ol start=3><li>Bolts<li>Nut</ol>', '<ol start=5><li>Bolts<li>Nut</ol>'),
    'q': ('<p>He said <q>never again</q> twice.</p>', '<p>He said <q>once again</q> twice.</p>'),
    'q to none': ('<p>He said <q>never again</q> twice.</p>', '<p>He said never again twice.</p>'),
    'ruby': ('<p><ruby>漢<rt>kan</rt></ruby> is read.</p>', '<p><ruby>漢<rt>han</rt></ruby> is read.</p>'),
    'dt id': ('<dl><dt id=GUC-MAX-SYNC-WORKERS>max_sync<dd>The default is 2.</dl>', '<dl><dt id=GUC-MAX-SYNC-WORKERS>max_sync<dd>The default is 4.</dl>'),
    'paren in link': ("<p>See <a href='/a(1)'>the page</a> there.</p>", "<p>See <a href='/a(2)'>the page</a> there.</p>"),
    'percent in link': ("<p>See <a href='/a%281%29'>the page</a> there.</p>", "<p>See <a href='/a%282%29'>the page</a> there.</p>"),
    'table in an item': ('<ul><li>Sizes<table><tr><td>S<td>1<tr><td>M<td>2</table></ul>', '<ul><li>Sizes<table><tr><td>S<td>1<tr><td>M<td>3</table></ul>'),
    'CJK emphasis': ('<p>これは<b>「重要」</b>です。</p>', '<p>これは<b>「軽微」</b>です。</p>'),
    'alt': ("<p><img src=/a.png alt='A red door'></p>", "<p><img src=/a.png alt='A blue door'></p>"),
    'image source': ("<p><img src=/a.png alt='A red door'></p>", "<p><img src=/b.png alt='A red door'></p>"),
    'gallery source': ('<ul><li><img src=/1.png alt=One><li><img src=/2.png alt=Two></ul>', '<ul><li><img src=/1.png alt=One><li><img src=/3.png alt=Two></ul>'),
    'video source': ('<blockquote><video src=/1.mp4></video></blockquote>', '<blockquote><video src=/2.mp4></video></blockquote>'),
    'button beside an image': ('<div><button>Sold out</button><img src=/1.png alt=One></div>', '<div><button>Add to cart</button><img src=/1.png alt=One></div>'),
    'select': ('<p>Size <select><option selected>Small<option>Large</select></p>', '<p>Size <select><option>Small<option selected>Large</select></p>'),
    'check box': ('<p><label><input type=checkbox checked> Fragile</label></p>', '<p><label><input type=checkbox> Fragile</label></p>'),
    'tel': ('<p>Call <a href=tel:+441>us</a> now.</p>', '<p>Call <a href=tel:+442>us</a> now.</p>'),
    'details summary': ('<details><summary>Can I return it?</summary><p>Yes, in 14 days.</p></details>', '<details><summary>Can I return it?</summary><p>Yes, in 30 days.</p></details>'),
    'meter': ('<p>Seats: <meter value=3 max=5></meter></p>', '<p>Seats: <meter value=4 max=5></meter></p>'),
    'output': ('<p>Sum <output>12</output> EUR</p>', '<p>Sum <output>13</output> EUR</p>'),
    'data value': ('<p><data value=12>Twelve</data> left.</p>', '<p><data value=13>Thirteen</data> left.</p>'),
    'math': ('<p>So <math><msup><mi>x</mi><mn>2</mn></msup></math> grows.</p>', '<p>So <math><msup><mi>x</mi><mn>3</mn></msup></math> grows.</p>'),
    'footnote': ('<p>As said.<a href=#n1>1</a></p><ol><li id=n1>See page 12.</ol>', '<p>As said.<a href=#n1>1</a></p><ol><li id=n1>See page 13.</ol>'),
    'caption': ('<figure><img src=/a.png alt=A><figcaption>Fig. 1, of 2020</figcaption></figure>', '<figure><img src=/a.png alt=A><figcaption>Fig. 1, of 2021</figcaption></figure>'),
    'cells swapped': ('<table><tr><th>Day<th>Fee<tr><td>Mon<td>1<tr><td>Tue<td>2</table>', '<table><tr><th>Day<th>Fee<tr><td>Tue<td>2<tr><td>Mon<td>1</table>'),
    'lone link': ('<p><a href=/terms1>The terms of 2020 for members</a></p>', '<p><a href=/terms2>The terms of 2021 for members</a></p>'),
    'row of bold label': ('<p><b>In stock:</b> 3</p>', '<p><b>In stock:</b> 0</p>'),
    'legend': ('<fieldset><legend>Pay by card</legend><p>Fees are 2 EUR.</p></fieldset>', '<fieldset><legend>Pay by cash</legend><p>Fees are 2 EUR.</p></fieldset>'),
    'role note': ('<div role=note><p>It ends in May.</p></div>', '<div role=note><p>It ends in June.</p></div>'),
    'dialog open': ('<dialog open><p>Recalled since May.</p></dialog>', '<dialog open><p>Recalled since June.</p></dialog>'),
}  # fmt: skip
#: What readers do not see as changed.
NOISE: Final = {
    'soft hyphen': ('<p>A cooperation of members.</p>', '<p>A co\xadoperation of mem\u200bbers.</p>'),
    'time text': ('<p>Seen <time datetime=2026-01-05T10:00>3 hours ago</time> by Ann.</p>', '<p>Seen <time datetime=2026-01-05T10:00>4 hours ago</time> by Ann.</p>'),
    'relative de': ('<p>vor 3 Stunden</p>', '<p>vor 4 Stunden</p>'),
    'relative ja': ('<p>3時間前</p>', '<p>4時間前</p>'),
    'relative pl': ('<p>3 godziny temu</p>', '<p>4 godziny temu</p>'),
    'relative ar': ('<p>قبل 3 ساعات</p>', '<p>قبل 4 ساعات</p>'),
    'session': ("<p>See <a href='/a?PHPSESSID=0123456789abcdef0123456789abcdef'>it</a> there.</p>", "<p>See <a href='/a?PHPSESSID=fedcba9876543210fedcba9876543210'>it</a> there.</p>"),
    'nbsp': ('<p>The fee is 20 EUR.</p>', '<p>The fee is&nbsp;20&nbsp;EUR.</p>'),
    'wbr': ('<p>The superfee is 20 EUR.</p>', '<p>The super<wbr>fee is 20 EUR.</p>'),
    'class': ('<p class=a>The fee is 20 EUR.</p>', '<p class=b>The fee is 20 EUR.</p>'),
}  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_each_change_is_seen_and_delivered(shell: str) -> None:
    broken = dict[str, str]()
    for name, pair in CHANGES.items():
        before, after = (page(shell, html, is_big=False).encode() for html in pair)
        old, new = seen_in(before), seen_in(after)
        gone, come = Counter(old.blocks), Counter(new.blocks)
        if old.lacks(gone - come) | new.lacks(come - gone):
            broken[name] = "a word that changed is not in the document"
        elif old.delivered == new.delivered:
            broken[name] = "the document is the same"
        elif not kinds_of(channels(before, URL, "text/html"), channels(after, URL, "text/html")):
            broken[name] = "the document differs and no kind is reported"
    assert broken == {}


@pytest.mark.parametrize("shell", SHELLS)
def test_noise_is_not_reported(shell: str) -> None:
    reported = list[str]()
    for name, pair in NOISE.items():
        before, after = (page(shell, html, is_big=False).encode() for html in pair)
        if (
            kinds_of(channels(before, URL, "text/html"), channels(after, URL, "text/html"))
            or seen_in(before).blocks != seen_in(after).blocks
        ):
            reported.append(name)
    assert reported == []
