"""Histories of pages that are played into a store."""

from pathlib import Path

from scripts.benchmarks.retractions import Counts, replayed


def test_content_that_another_url_shows_later_is_not_taken_back(tmp_path: Path) -> None:
    notice = b"<title>Imprint</title><main><p>The clinic in Hill Street 5 is run by a trust.</p>"
    pages = [
        (1_700_000_000.0 + 86_400 * day, f"https://clinic.example/{name}", notice)
        for day, name in enumerate(("imprint", "imprint", "about", "contact"))
    ]
    found = replayed(pages, tmp_path)
    assert found == Counts(4, 4, 0, 0, 0, 0)
