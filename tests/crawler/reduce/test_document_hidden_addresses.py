"""Addresses that Cloudflare hides from machines, with another key in each response."""

import pytest

from freshet.crawler.reduce.channels import channels, kinds_of
from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.page import parse

URL = "https://h.example/terms/"
ADDRESS = "legal@h.example"
PAGE = "<title>Terms</title><main><h1>Terms</h1><p>You may write to {} about them, we read it all."
#: What Cloudflare writes, with the hidden address in place of X.
FORMS = {
    "text": '<span class="__cf_email__" data-cfemail="X">[email&#160;protected]</span>',
    "text, single quotes": "<span data-cfemail='X'>[email&#160;protected]</span>",
    "text without quotes": "<i data-cfemail=X>[email&#160;protected]</i>",
    "text that is a link": '<a href="/cdn-cgi/l/email-protection" class="__cf_email__" '
    'data-cfemail="X">[email&#160;protected]</a>',
    "link": '<a href="/cdn-cgi/l/email-protection#X">our office</a>',
    "link, single quotes": "<a href='/cdn-cgi/l/email-protection#X'>our office</a>",
    "link without quotes": "<a href=/cdn-cgi/l/email-protection#X>our office</a>",
    "link of the whole URL": '<a href="https://h.example/cdn-cgi/l/email-protection#X">us</a>',
    "link of another host": '<a href="//other.example/cdn-cgi/l/email-protection#X">us</a>',
    "link with attributes": '<a class="b c" href="/cdn-cgi/l/email-protection#X" rel=x>us</a>',
    "large letters": '<A CLASS=b HREF="/cdn-cgi/l/email-protection#X">us</A>',
    "link and text": '<a href="/cdn-cgi/l/email-protection#X"><span class="__cf_email__" '
    'data-cfemail="X">[email&#160;protected]</span></a>',
}


def hidden(form: str, key: int, address: str = ADDRESS) -> bytes:
    """Return a page with an address that is hidden with a key."""
    coded = bytes((key, *(key ^ each for each in address.encode()))).hex()
    return PAGE.format(FORMS[form].replace("X", coded)).encode()


@pytest.mark.parametrize("form", FORMS)
def test_the_key_of_a_response_is_no_change_and_an_address_is_one(form: str) -> None:
    one, same, other = (
        hidden(form, 17), hidden(form, 0xA5), hidden(form, 17, "dpo@h.example")
    )  # fmt: skip
    assert document(one, URL, "text/html") == document(same, URL, "text/html")
    assert parse(one, URL, "text/html").blocks == parse(same, URL, "text/html").blocks
    read = [channels(body, URL, "text/html") for body in (one, other)]
    assert kinds_of(*read) & {"links", "words"}
    html = document(one, URL, "text/html").html
    assert ADDRESS in html


@pytest.mark.parametrize("form", [form for form in FORMS if "#X" in FORMS[form]])
def test_a_hidden_address_is_no_page_to_visit(form: str) -> None:
    assert parse(hidden(form, 17), URL, "text/html").links.urls == ()


def test_what_is_hidden_beside_an_address_stays_in_the_link() -> None:
    body = hidden("link", 9, 'a@h.example?subject=A "b" <c>')
    assert 'href="mailto:a@h.example?subject=A' in document(body, URL, "text/html").html
