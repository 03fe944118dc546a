"""`freshet import`, as it is typed."""

import io
import json
import tomllib
import zipfile
from functools import partial
from pathlib import Path

import pytest

from freshet.config.settings import SiteSettings
from tests.console import as_json, freshet

WATCHES = {
    "watching": {
        "a": {"url": "https://a.example/", "title": "A", "time_between_check": {"hours": 6}},
        "b": {"url": 'https://b.example/?q="1"&é', "title": None, "tags": ["x"]},
        "c": {"url": "https://c.example/", "paused": True},
    }
}
JOBS = "url: https://d.example/\nname: D\n---\ncommand: ls\n"
imported = partial(freshet, "import")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    file = tmp_path / "urls.yaml"
    file.write_text(JOBS)
    return file


@pytest.fixture
def watches(tmp_path: Path) -> Path:
    file = tmp_path / "url-watches.json"
    file.write_text(json.dumps(WATCHES))
    return file


def test_several_lists_of_several_formats_go_into_one(
    watches: Path, jobs: Path, tmp_path: Path
) -> None:
    sites = tmp_path / "sites.txt"
    sites.write_text("# mine\nd.example # known\n")
    result = imported(watches, jobs, "--into", sites)
    assert result.exit_code == 0, result.output
    assert "2 sites added, 1 known before, 2 skipped" in result.stdout
    assert "url-watches.json, watch 3  https://c.example/  paused" in result.stdout
    assert sites.read_text() == (
        '# mine\nd.example # known\nhttps://a.example/  # A\nhttps://b.example/?q="1"&é\n'
    )


def test_importing_twice_changes_nothing_not_even_the_time_of_the_file(
    watches: Path, tmp_path: Path
) -> None:
    sites = tmp_path / "sites.csv"
    assert imported(watches, "--into", sites).exit_code == 0
    before = sites.stat()
    found = as_json("import", watches, "--into", sites)
    assert (found["added"], found["known"], len(found["skipped"])) == ([], 2, 1)
    assert (sites.stat().st_mtime_ns, sites.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_dry_run_shows_and_writes_nothing(watches: Path, tmp_path: Path) -> None:
    result = imported(watches, "--into", tmp_path / "sites.txt", "--dry-run")
    assert result.exit_code == 0
    assert "2 sites would be added" in result.stdout
    assert "https://a.example/" in result.stdout
    assert {each.name for each in tmp_path.iterdir()} == {"url-watches.json"}


def test_intervals_are_printed_as_tables_that_the_settings_take(
    watches: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        result = imported(watches, "--into", tmp_path / "sites.txt", "--intervals")
        rules = tomllib.loads(result.stdout)["sites"]
        assert [SiteSettings(**rule).most_days for rule in rules] == [0.25]
        assert rules[0]["match"] == "https://a.example/"


def test_a_backup_is_told_by_its_content(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("url-watches.json", json.dumps(WATCHES))
    (tmp_path / "backup").write_bytes(data.getvalue())
    (tmp_path / "list").write_text("https://a.example/ news\nhttps://e.example/\n")
    (tmp_path / "map").write_text("<urlset><url><loc>https://f.example/</loc></url></urlset>")
    (tmp_path / "feeds").write_text('<opml><outline xmlUrl="https://g.example/feed"/></opml>')
    files = [tmp_path / name for name in ("backup", "list", "map", "feeds")]
    found = as_json("import", *files, "--into", tmp_path / "sites.txt")
    hosts = [each["url"].split("/")[2][0] for each in found["added"]]
    assert hosts == ["a", "b", "e", "f", "g"]
    assert found["lost"] == {"tags": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"Dear Sir or Madam", "unknown format"), (b"{", "not JSON"), (b"PK\x03\x04", "ZIP"),
     (b"url: &a [*a]", "a reference"), (b"<opml><!-- ", "not well-formed")],
)  # fmt: skip
def test_a_file_that_is_not_read_changes_nothing_and_is_told_in_one_line(
    tmp_path: Path, watches: Path, content: bytes, words: str
) -> None:
    (tmp_path / "bad").write_bytes(content)
    result = imported(watches, tmp_path / "bad", "--into", tmp_path / "sites.txt")
    assert result.exit_code == 1
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "sites.txt").exists()


def test_the_names_of_strangers_steer_no_terminal(tmp_path: Path) -> None:
    job = 'url: https://a.example/\nname: "a\\e[31m\\nb"\n---\nurl: "https://b/\\0\\e[2J"\n'
    (tmp_path / "urls.yaml").write_text(job)
    result = imported(tmp_path / "urls.yaml", "--into", tmp_path / "sites.txt")
    assert result.exit_code == 0
    assert "\x1b" not in result.output + (tmp_path / "sites.txt").read_text()


def test_a_list_keeps_its_permissions_and_a_link_stays_one(watches: Path, tmp_path: Path) -> None:
    sites, link = tmp_path / "sites.txt", tmp_path / "link.txt"
    sites.write_text("z.example\n")
    sites.chmod(0o640)
    link.symlink_to(sites)
    assert imported(watches, "--into", link).exit_code == 0
    assert link.is_symlink()
    assert sites.stat().st_mode & 0o777 == 0o640
    assert sites.read_text().startswith("z.example\nhttps://a.example/")
