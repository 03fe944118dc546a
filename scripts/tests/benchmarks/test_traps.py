"""The benchmark of traps, on a manual of a few pages."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from scripts.benchmarks import traps
from scripts.benchmarks.manual_sites import ManualSite, manuals, of_several

PAGES = 12


def write_manual(folder: Path, language: str = "") -> None:
    folder.mkdir(parents=True)
    for n in range(PAGES):
        links = "".join(f'<li><a href="{k or "index"}.html">Page {k}</a>' for k in range(PAGES))
        said = "".join(
            f"<p>Sentence {k} {language} of page {n} says {n * k}.</p>" for k in range(9)
        )
        html = f"<html><body><ul>{links}</ul><main><h1>Page {n}</h1>{said}</main></body></html>"
        (folder / f"{n or 'index'}.html").write_text(html, "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_manual(tmp_path / "guide-en_1.0")
    write_manual(tmp_path / "guide-de_1.0", "Satz")
    return tmp_path


def test_folders_are_manuals_and_those_of_one_name_its_translations(folder: Path) -> None:
    found = list(manuals(folder, PAGES, 100))
    assert [(each.name, len(each.pages)) for each in found] == [
        ("guide-de_1.0", PAGES), ("guide-en_1.0", PAGES),
    ]  # fmt: skip
    (both,) = of_several(found, "language")
    assert both.editions == ("de", "en")
    assert len(both.pages) == 2 * PAGES


@pytest.mark.parametrize(
    "kind", ["one URL for each page", "session: in the query", "print: /print/"]
)
def test_each_document_is_found_once(folder: Path, tmp_path: Path, kind: str) -> None:
    manual = next(manuals(folder, PAGES, 100))
    site = ManualSite(manual, traps.spellings(manual)[kind])
    figures = traps.crawled(site, tmp_path / "crawl.db").figures()
    assert (figures["documents"], figures["lost"], figures["untold"]) == (PAGES, 0, 0)


def test_what_is_left_out_is_told(folder: Path, tmp_path: Path) -> None:
    manual = next(manuals(folder, PAGES, 100))
    spelling, settings = traps.left_out(manual)["all of these"]
    found = traps.crawled(ManualSite(manual, spelling, settings), tmp_path / "crawl.db")
    assert found.untold() == []
    assert "nofollow" in found.report.held_back


def test_days_of_changelogs_are_events(tmp_path: Path) -> None:
    days = {date(2024, 1, 1) + timedelta(n): f"entry {n}" for n in range(0, 90, 9)}
    site = traps.CalendarSite(days, "path")
    assert len(site.wanted) == 10
    assert (
        sum(site.document(site._target(date.fromisoformat(day))) == day for day in site.wanted)
        == 10
    )


def test_without_a_manual_nothing_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["bench traps", "--manuals", str(tmp_path)])
    traps.main()
    said = capsys.readouterr()
    assert json.loads(said.out)["measured"] is False
    assert "nothing is measured" in said.err
