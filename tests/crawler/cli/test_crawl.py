"""`freshet crawl` as its user meets it: what is printed where, exit codes, wrong input."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from scripts.synthetic_server import plain, serve
from tests.console import as_json, freshet
from tests.integration.scripted import Page, scripted
from tests.storage.small_store import rows

COMMAND = (sys.executable, "-c", "from freshet.crawler.cli import run; run()", "crawl")
LOCAL = ("--allow-private-addresses", "--delay", "0")
crawl = partial(freshet, "crawl")


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def finished(*arguments: str) -> tuple[int | None, str, str]:
    """Exit code, standard output and standard error of a crawl in its own process."""
    process = await start(*arguments)
    stdout, stderr = await process.communicate()
    return process.returncode, stdout.decode(), stderr.decode()


def only_line(text: str) -> str:
    (line,) = text.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "nothing to crawl: name a SITE, or a list with --sites FILE"),
        (["https://example.org"], 2, "freshet crawl https://example.org --contact"),
        (["http://127.0.0.1/", "--delay", "-1"], 2, "greater than or equal to 0"),
        (["http://127.0.0.1/", "--scope", "galaxy"], 2, "crawl.scope"),
        (["http://127.0.0.1/", "--resume", "--new"], 2, "give --resume or --new, not both"),
        (["http://127.0.0.1/", "--resolve", "example.org"], 2, "expected HOST:ADDRESS"),
        (["http://127.0.0.1/", "--config", "missing.toml"], 2, "missing.toml"),
        (["--sites", "missing.txt"], 2, "missing.txt: No such file"),
        (["http://127.0.0.1/", "--db", "missing/crawl.db"], 1, "missing/crawl.db: No such file"),
        (["http://127.0.0.1/", "--resume"], 2, "there is no run to resume"),
    ],
)
def test_what_cannot_be_done_is_one_line_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = crawl(*arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    assert words in only_line(result.stderr)


def test_a_refused_crawl_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    crawl("https://example.org/")
    crawl()
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_is_reported_with_its_number_and_strict_stops_there(tmp_path: Path) -> None:
    sites = tmp_path / "sites.txt"
    sites.write_text("# mine\nftp://example.org/\nhttp://127.0.0.1:2/\n", "utf-8")
    strict = crawl("--sites", str(sites), "--strict", "--db", str(tmp_path / "crawl.db"))
    assert strict.exit_code == 2
    assert f"{sites}:2: the scheme 'ftp'" in only_line(strict.stderr)
    assert not (tmp_path / "crawl.db").exists()


def test_an_unusable_list_is_wrong_usage(tmp_path: Path) -> None:
    sites = tmp_path / "picture.png"
    sites.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    result = crawl("--sites", str(sites), "--db", str(tmp_path / "crawl.db"))
    assert result.exit_code == 2
    assert "no usable line" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "name", ["none.txt", "None.TXT", "none.csv", "./none", "../none.xml", "/none", "~/none.opml"]
)
def test_the_name_of_a_file_is_taken_for_no_host(name: str) -> None:
    result = crawl(name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert only_line(result.stderr) == (
        f"freshet: {name} is neither a host nor an existing file; "
        "pass a site list with --sites FILE"
    )


@pytest.mark.parametrize("name", ["sites.txt", "sites", "example.org"])
def test_a_file_is_given_as_a_list(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("example.org\n")
    result = crawl(name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert only_line(result.stderr).startswith(f"freshet: {name} is a file; ")


@pytest.mark.parametrize(
    "url", ["example.org/page.html", "https://example.org/list.txt", "http://none.txt/"]
)
def test_a_page_may_have_the_name_of_a_file(url: str) -> None:
    assert "must say who runs it" in only_line(crawl(url).stderr)


async def test_a_bound_that_holds_something_back_is_one_line_and_counted(tmp_path: Path) -> None:
    db = str(tmp_path / "crawl.db")
    named = "".join(f"Sitemap: {{origin:h}}/{n}.xml\n" for n in range(1_003))
    robots = Page(named, headers={"Content-Type": "text/plain"})
    async with scripted({"h": {"/": Page("<p>Home.</p>"), "/robots.txt": robots}}) as web:
        code, _, stderr = await finished(
            f"{web.origin('h')}/", "--db", db, *LOCAL, "--max-pages", "1", "--log-format", "console"
        )
    assert code == 0
    (line,) = [each for each in stderr.splitlines() if "a limit is reached" in each]
    assert f"sitemaps that a robots.txt names ({web.origin('h')})" in line
    status = await asyncio.to_thread(as_json, "status", "--db", db)
    assert status["bounds"] == {"sitemaps that a robots.txt names": 3}


@pytest.mark.long
async def test_the_scope_of_a_store_stays_until_it_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(tmp_path / "crawl.db")
    async with serve(plain(hosts=1, pages_per_host=5)) as server:
        asked = (server.url("h1"), "--db", db, "--json", *LOCAL)

        async def pages(*arguments: str) -> tuple[int, str]:
            code, stdout, stderr = await finished(*asked, *arguments)
            assert code == 0
            return json.loads(stdout)["pages"], stderr

        assert await pages("--scope", "list") == (1, "")
        assert await pages() == (1, "")
        monkeypatch.setenv("FRESHET_CRAWL__SCOPE", "domain")
        count, line = await pages()
        assert count == 1
        assert "the scope of" in line
        assert "is list; --scope domain changes it" in only_line(line)
        monkeypatch.delenv("FRESHET_CRAWL__SCOPE")
        assert (await pages("--scope", "host"))[0] == 5
        assert (await pages())[0] == 5


async def test_json_prints_one_object_with_the_documented_counts(tmp_path: Path) -> None:
    db = str(tmp_path / "crawl.db")
    async with serve(plain(hosts=2, pages_per_host=5)) as server:
        sites = [server.url("h1"), server.url("h2")]
        code, stdout, stderr = await finished(*sites, "--db", db, "--json", *LOCAL)
    report = json.loads(only_line(stdout))
    assert (code, stderr) == (0, "")
    assert report | {"seconds": 0} == report | {
        "pages": 10, "fetches": 14, "changed": 0, "unchanged": 0, "new": 10, "gone": 0,
        "refused_by_robots": 0, "errors": 0, "seconds": 0,
    }  # fmt: skip


async def test_a_list_is_read_from_standard_input(tmp_path: Path) -> None:
    async with serve(plain(hosts=1, pages_per_host=3)) as server:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "--sites", "-", "--db", str(tmp_path / "crawl.db"), "--json", *LOCAL,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        stdout, _ = await process.communicate(f"url,importance\n{server.url('h1')},2.5\n".encode())
    assert json.loads(stdout)["pages"] == 3
    assert rows(tmp_path / "crawl.db", "SELECT importance FROM seed") == [(2.5,)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_drains_and_what_was_reported_is_there(
    tmp_path: Path, number: signal.Signals
) -> None:
    db = tmp_path / "crawl.db"
    async with serve(plain(hosts=1, pages_per_host=500), latency_s={"h1": 0.01}) as server:
        process = await start(server.url("h1"), "--db", str(db), "--verbose", *LOCAL)
        assert process.stderr is not None
        # One line tells that the host's clock is another.
        for _ in range(6):
            await process.stderr.readline()
        process.send_signal(number)
        stdout, _ = await process.communicate()
    assert process.returncode == 0
    assert "Stopped (interrupted)" in stdout.decode()
    assert rows(db, "SELECT state FROM crawl_run") == [("interrupted",)]
    assert 5 <= len(rows(db, "SELECT 1 FROM observation")) < 500


async def test_a_full_disk_is_one_line_and_harms_nothing(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    async with serve(plain(hosts=1, pages_per_host=300)) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FULL_DISK, server.url("h1"), "--db", str(db), *LOCAL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        stdout, stderr = await process.communicate()
        assert (process.returncode, stdout) == (1, b"")
        assert str(db) in only_line(stderr.decode())
        assert rows(db, "PRAGMA integrity_check") == [("ok",)]
        code, _, _ = await finished(server.url("h1"), "--db", str(db), "--json", *LOCAL)
    pages = rows(db, "SELECT count(DISTINCT page_id) FROM observation")
    assert (code, pages) == (0, [(300,)])


#: A process that may not make a file longer than 400 kB, and is told so by an error.
FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
from tests.console import app
app(["crawl", *sys.argv[1:]])
"""


async def test_more_hosts_than_files_that_may_be_open_are_crawled_whole(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    async with scripted({f"h{n}": {"/": Page(f"Page {n}.")} for n in range(150)}) as site:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FEW_FILES, *(site.origin(f"h{n}") for n in range(150)),
            "--db", str(db), "--json", *LOCAL, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        report = json.loads((await process.communicate())[0])
    assert (process.returncode, report["pages"], report["errors"]) == (0, 150, 0)


#: A process that may open a hundred files.
FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
from tests.console import app
app(["crawl", *sys.argv[1:]])
"""


async def test_a_crawl_that_has_no_page_fails(tmp_path: Path) -> None:
    site = "http://h1.localhost:1/"
    code, stdout, stderr = await finished(site, "--db", str(tmp_path / "a.db"), "--json", *LOCAL)
    assert (code, json.loads(stdout)["errors"]) == (1, 1)
    bound, line = stderr.splitlines()
    assert "a limit is reached: ports of other services" in bound
    assert "no page could be fetched" in line


async def test_the_end_of_a_run_counts_for_itself_and_fails_only_with_every_site(
    tmp_path: Path,
) -> None:
    site = {"/": Page('<p>A page.</p><a href="/a">a</a>'), "/a": Page("<p>Another page.</p>")}
    async with scripted({"h": site}) as web:
        asked = (f"{web.origin('h')}/", "--db", str(tmp_path / "a.db"), "--json", *LOCAL)
        await finished(*asked)
        site["/b"] = Page("<p>A third page.</p>")
        site["/"] = Page('<p>A page.</p><a href="/b">b</a><a href="/c">c</a>')
        for pages, appeared in ((3, ["b"]), (0, [])):
            code, stdout, _ = await finished(*asked, "--max-pages", "3")
            report = json.loads(stdout)
            found = [url[-1] for url in report["appeared"]]
            assert (code, report["pages"], report["new"], found) == (0, pages, len(found), appeared)
            assert report["gone"] == (not pages)
    code, stdout, stderr = await finished(
        "a b", *asked, "--db", f"{tmp_path}/b.db", "--patience", "1"
    )
    (silent,) = json.loads(stdout)["silent_seeds"]
    assert (code, silent["reason"]) == (1, "robots.txt unreachable: Connection refused")
    assert stderr.startswith("skipped a b: more than a URL")


@pytest.mark.long
async def test_without_a_name_server_a_crawl_blames_no_host_and_ends(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", NO_NAME_SERVER, "https://example.org/", "--db",
        str(tmp_path / "a.db"), "--json", "--patience", "1", "--contact", "https://example.org/",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    report = json.loads(stdout)
    assert (process.returncode, report["ending"]) == (1, "cut off")
    assert (report["errors"], report["fetches"], report["deferred"]) == (0, 0, [])
    assert b"the network is away (no_resolver)" in stderr


#: A process whose name servers do not answer.
NO_NAME_SERVER = """
import functools, sys
from freshet.crawler.fetch import addresses
addresses.CachingResolver = functools.partial(
    addresses.CachingResolver, nameservers=["127.0.0.1:1"]
)
from tests.console import app
app(["crawl", *sys.argv[1:]])
"""


async def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    async with serve(plain(hosts=1, pages_per_host=3)) as server:
        read, write = os.pipe()
        os.close(read)
        process = await asyncio.create_subprocess_exec(
            *COMMAND, server.url("h1"), "--db", str(tmp_path / "crawl.db"), "--json", *LOCAL,
            stdout=write, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        os.close(write)
        _, stderr = await process.communicate()
    assert "Traceback" not in stderr.decode()


# -- faults of Freshet itself ------------------------------------------------
#: A process in which a stage of a visit raises for the URLs that match a pattern.
FAULTY = """
import re, sys
stage, pattern, *arguments = sys.argv[1:]
from freshet.crawler import visit
from freshet.crawler.fetch import client
from freshet.storage import writer

def failing(function, error):
    def call(*args, **named):
        subjects = [getattr(each, "due", each) for each in args]
        is_told = any(getattr(getattr(each, "observation", None), "reason", None) for each in args)
        if not is_told and any(re.search(pattern, getattr(it, "url", "")) for it in subjects):
            raise error
        return function(*args, **named)
    return call

place, name, error = {
    "fetch": (client.NetworkFetcher, "_converse", RuntimeError("no loop (of this thread)")),
    "read": (visit.Reducer, "reduce", AttributeError("no such column")),
    "compare": (visit.Comparer, "compare", KeyError("version")),
    "record": (visit.Recorder, "record", TypeError("not a number")),
    "store": (writer.VisitTables, "_turned_round", IndexError("tuple index out of range")),
}[stage]
setattr(place, name, failing(getattr(place, name), error))
from tests.console import app
app(["crawl", *arguments])
"""


async def faulty(stage: str, pattern: str, *arguments: str) -> tuple[int | None, str, str]:
    """Exit code, standard output and error of a crawl in which a stage fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FAULTY, stage, pattern, *arguments, *LOCAL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    return process.returncode, stdout.decode(), stderr.decode()


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("store", "IndexError"),
        *(
            pytest.param(stage, error, marks=pytest.mark.long)
            for stage, error in [
                ("fetch", "RuntimeError"), ("read", "AttributeError"), ("compare", "KeyError"),
                ("record", "TypeError"),
            ]
        ),
    ],
)  # fmt: skip
async def test_a_crawl_ends_with_1_if_most_pages_fail_in_any_stage(
    tmp_path: Path, stage: str, error: str
) -> None:
    async with serve(plain(hosts=1, pages_per_host=4)) as server:
        site, db = server.url("h1"), str(tmp_path / "crawl.db")
        code, _, stderr = await faulty(stage, "page-[1-3]$", site, "--db", db)
        warning = stderr.splitlines()[-1]
        assert (code, "3 of 4 pages failed by an internal error" in warning) == (1, True), stderr
        assert error in warning


@pytest.mark.parametrize("arguments", [(), pytest.param(("--json",), marks=pytest.mark.long)])
async def test_a_crawl_in_which_half_of_the_pages_fail_is_a_result(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    async with serve(plain(hosts=1, pages_per_host=4)) as server:
        site, db = server.url("h1"), str(tmp_path / "crawl.db")
        code, stdout, _ = await faulty("store", "page-[12]$", site, "--db", db, *arguments)
    assert code == 0
    if arguments:
        assert json.loads(stdout)["internal_errors"] == {"IndexError": 2}


async def test_a_crawl_ends_with_1_if_it_fails_at_the_home_pages_of_most_sites(
    tmp_path: Path,
) -> None:
    async with serve(plain(hosts=4, pages_per_host=10)) as server:
        sites = [server.url(f"h{n}") for n in range(1, 5)]
        pattern = "/(h1|h2|h3)[^/]*/$"
        code, stdout, stderr = await faulty(
            "store", pattern, *sites, "--db", str(tmp_path / "a.db"), "--json"
        )
    assert (code, json.loads(stdout)["pages"]) == (1, 10)
    assert "3 of 4 sites failed by an internal error of Freshet: IndexError" in stderr


@pytest.mark.parametrize(
    "status", [404, *(pytest.param(n, marks=pytest.mark.long) for n in (403, 410))]
)
async def test_what_a_server_refuses_is_no_internal_error(tmp_path: Path, status: int) -> None:
    home = Page("<p>Home.</p>" + "".join(f'<a href="/{n}">{n}</a>' for n in range(6)))
    site = {"/": home} | {f"/{n}": Page("no", status=status) for n in range(6)}
    async with scripted({"h": site}) as web:
        asked = (f"{web.origin('h')}/", "--db", str(tmp_path / "a.db"), "--json", *LOCAL)
        code, stdout, _ = await finished(*asked)
    assert (code, json.loads(stdout)["internal_errors"]) == (0, {})
