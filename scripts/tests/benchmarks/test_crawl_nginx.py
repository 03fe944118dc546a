"""What nginx is told, and what its log tells."""

from pathlib import Path

from scripts.benchmarks.crawl_nginx import configuration, parse_log

LOG = """\
200 127.0.0.2 /robots.txt
200 127.0.0.2 /index.html
200 127.0.0.3 /index.html
304 127.0.0.2 /a b.html
200 127.0.0.2 /index.html
404 127.0.0.2 /missing.html
"""


def test_pages_are_the_different_urls_that_were_answered() -> None:
    found = parse_log(LOG)
    assert found.pages == {"127.0.0.2/index.html", "127.0.0.3/index.html", "127.0.0.2/a b.html"}


def test_robots_txt_counts_as_a_request_only() -> None:
    found = parse_log(LOG)
    assert (found.count, found.not_modified, found.other_answers) == (6, 1, 1)


def test_every_site_has_its_own_address_and_a_robots_txt() -> None:
    told = configuration([Path("/srv/a"), Path('/srv/"b')], ["127.0.0.2", "127.0.0.3"], 8000)
    assert 'listen 127.0.0.2:8000; root "/srv/a";' in told
    assert 'listen 127.0.0.3:8000; root "/srv/\\"b";' in told
    assert told.count("location = /robots.txt") == 2
