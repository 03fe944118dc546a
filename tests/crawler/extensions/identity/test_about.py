"""The page about the crawler for webmasters."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from protego import Protego

from freshet.config.loading import load
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.identity.cli.about import page_about
from freshet.crawler.extensions.identity.keys import new_key, write_new

SAID = {
    "crawl.product": "Riverbot",
    "crawl.contact": "bot@example.org",
    "identity.operator": "River & Sons <Ltd>",
    "identity.reason": "It keeps an index of rivers.",
    "identity.addresses": ["192.0.2.7", "2001:db8::/64"],
}
DIRECTORY = "https://bot.example.org/.well-known/http-message-signatures-directory"


def page(**more: Any) -> str:
    overrides = {name.replace("__", "."): value for name, value in more.items()}
    return page_about(load(None, {**SAID, **overrides})[0], 1_796_000_000.0)


def test_it_says_who_and_why_and_is_of_one_piece() -> None:
    text = page()
    assert "River &amp; Sons &lt;Ltd&gt;. It keeps an index of rivers." in text
    assert 'href="mailto:bot@example.org">bot@example.org</a>' in text
    assert re.findall(r"<li><code>(.+?)</code>", text) == ["192.0.2.7/32", "2001:db8::/64"]
    assert "Riverbot/" in text
    # Nothing is loaded from elsewhere, and no script is run.
    assert not re.search(r"<script|<link|<img|src=|url\(|@import", text)
    assert "Web Bot Auth" not in text
    assert "By its user agent alone" in page(**{"identity.addresses": []})


def test_its_examples_refuse_the_crawler() -> None:
    whole, part = (
        Protego.parse(html.unescape(each))
        for each in re.findall(r"<pre>(User-agent.*?)</pre>", page(), re.DOTALL)
    )
    assert not whole.can_fetch("https://example.org/page", "Riverbot")
    assert whole.can_fetch("https://example.org/page", "Otherbot")
    assert not part.can_fetch("https://example.org/private/page", "Riverbot")
    assert part.can_fetch("https://example.org/page", "Riverbot")
    assert part.crawl_delay("Riverbot") == 10


def test_it_names_the_keys_where_requests_are_signed(tmp_path: Path) -> None:
    file, key = tmp_path / "key.json", new_key(0)
    signing = {"identity__key": str(file), "identity__directory": DIRECTORY}
    assert DIRECTORY not in page(**signing)
    with pytest.raises(CrawlError, match="there is no key"):
        page(identity__sign=True, **signing)
    write_new(file, [key])
    text = page(identity__sign=True, **signing)
    assert f'<a href="{DIRECTORY}">' in text
    assert f"<li><code>{key.thumbprint}</code></li>" in text
    assert "By its user agent alone" not in text
