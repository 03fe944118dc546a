"""Shards on a real Ray: a crawl to its end, and a daemon whose processes are killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module, util
from pathlib import Path
from shutil import which
from time import monotonic, sleep, time
from unittest.mock import MagicMock

import pytest
from tenacity import wait_none
from typer.testing import CliRunner

from freshet.crawler.cli.verbs import application
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.shards.cli import sharded
from freshet.storage.database import open_store
from freshet.storage.shards import Shards
from freshet.storage.tables import runs
from scripts.benchmarks.linked_sites import LinkedSites, serving
from scripts.benchmarks.process_tree import MARK, Tree, kill
from scripts.benchmarks.store_inspection import reading
from tests.integration.hubs import free_port

SITES = LinkedSites(hosts=6, pages=6)
on_ray = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(util.find_spec("ray") is None, reason="Ray is an extra"),
]


class Command:
    """A command on two shards, in a folder, with all its processes."""

    def __init__(self, folder: Path, port: int, verb: str, *options: str) -> None:
        (folder / "freshet.toml").write_text(SITES.settings(), "utf-8")
        self.tree, self.folder = Tree(f"{os.getpid()} {folder}"), folder
        program = str(Path(sys.executable).with_name("freshet"))
        self.process = subprocess.Popen(
            [program, verb, *SITES.roots(port), "--db", "store", "--shards", "2", "--json",
             "--delay", "0.05", *options],
            cwd=folder, env=os.environ | {MARK: self.tree.mark}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def until(self, true: Callable[[], object], seconds: float = 60.0) -> None:
        end = monotonic() + seconds
        while not true():
            assert self.process.poll() is None, self.process.communicate()
            assert monotonic() < end
            self.tree.alive()
            sleep(0.2)

    def kill(self, role: str) -> None:
        chosen = next(it for it in self.tree.alive() if it.role == role)
        assert kill(chosen)

    def pages(self) -> list[str]:
        sql = "SELECT url FROM page WHERE held_back IS NULL AND role = 'page' AND last_at > 0"
        return [str(row[0]) for row in self.rows(sql)]

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for path in sorted((self.folder / "store").glob("*.db")):
            with reading(path) as db:
                if db.execute("PRAGMA user_version").fetchone()[0]:
                    found += db.execute(sql).fetchall()
        return found

    def listening(self) -> set[str]:
        """Return the addresses on which its processes listen."""
        sockets = {link for it in self.tree.alive() for link in _links(it.pid)}
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                    found.add(words[1].partition(":")[0])
        return found


def _links(pid: int) -> list[str]:
    try:
        return [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    end = monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            assert monotonic() < end
            sleep(0.05)
        else:
            return


async def _begun_in_one(shards: Shards) -> None:
    """Begin a run in the first shard, and not in the others."""
    shards.write()
    database = await open_store(shards.path(0))
    await database.write(partial(runs.start, now=time(), settings="{}"))
    await database.close()


class TestOnRay:
    pytestmark = on_ray

    @pytest.mark.long
    def test_a_crawl_that_was_killed_early_finds_what_other_shards_lead_to(
        self, tmp_path: Path
    ) -> None:
        asyncio.run(_begun_in_one(Shards(tmp_path / "store", 2)))
        with serving(SITES, tmp_path / "log") as port:
            command = Command(tmp_path, port, "crawl", "--resume")
            said, errors = command.process.communicate(timeout=120)
        assert command.process.returncode == 0, errors
        assert json.loads(said)["pages"] == 36
        assert sorted(command.pages()) == sorted(SITES.urls(port))
        assert command.rows("SELECT count(*) FROM outgoing") == [(0,), (0,)]
        assert not command.tree.kill()

    @pytest.mark.long
    def test_a_daemon_goes_on_without_the_actors_that_are_killed(self, tmp_path: Path) -> None:
        with serving(SITES, tmp_path / "log") as port:
            command = Command(tmp_path, port, "daemon", "--budget", "36000/hour")
            try:
                command.until(command.pages)
                assert command.listening() <= {"0100007F", "0000000000000000FFFF00000100007F"}
                command.kill("shard")
                command.until(lambda: sorted(command.pages()) == sorted(SITES.urls(port)), 90)
                command.kill("coordinator")
                epochs = sorted(command.rows("SELECT epoch FROM lease"))
                assert epochs == [(1,), (2,)]
                command.process.send_signal(signal.SIGINT)
                said, errors = command.process.communicate(timeout=60)
                assert command.process.returncode == 0, errors
                assert json.loads(said)["ending"] == "interrupted"
            finally:
                left = command.tree.kill()
        assert not left

    @pytest.mark.parametrize("has_token", [True, False])
    @pytest.mark.parametrize("mode", ["token", pytest.param("disabled", marks=pytest.mark.long)])
    def test_a_cluster_without_a_token_is_not_joined(
        self, tmp_path: Path, mode: str, has_token: bool
    ) -> None:
        token = tmp_path / "token"
        token.write_text("0123456789abcdef" * 3)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        environment |= {"HOME": str(tmp_path)}
        with_token = environment | {"RAY_AUTH_TOKEN_PATH": str(token)}
        port = free_port()
        program = Path(import_module("ray").__file__ or "").with_name("core")
        head = subprocess.Popen(
            [program / "src/ray/gcs/gcs_server", f"--gcs_server_port={port}",
             f"--log_dir={tmp_path}", f"--session-dir={tmp_path}", "--session-name=session_x",
             "--config_list=e30=",
             "--node-ip-address=127.0.0.1", "--metrics-agent-port=0", "--ray-commit=x",
             f"--node-id={'62' * 28}"],
            env=with_token | {"RAY_AUTH_MODE": mode}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for(port)
            join = "import sys; from freshet.crawler.extensions.shards import ray_actors as it; "
            join += "it._require_token(sys.argv[1])"
            found = subprocess.run(
                [sys.executable, "-c", join, f"127.0.0.1:{port}"], text=True, check=False,
                env=with_token if has_token else environment, capture_output=True,
            )  # fmt: skip
        finally:
            head.kill()
            head.wait()
        is_joined = mode == "token" and has_token
        assert (found.returncode == 0) == is_joined, found.stderr
        word = "the cluster wants no token" if mode == "disabled" else "its token is not here"
        assert is_joined or word in found.stderr

    def test_the_folder_of_ray_lies_in_one_of_ours_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        actors = import_module("freshet.crawler.extensions.shards.ray_actors")
        fake = MagicMock()
        monkeypatch.setattr(actors, "ray", fake)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with actors.connected(None, tmp_path / "store"):
            folder = Path(fake.init.call_args.kwargs["_temp_dir"])
            (ours,) = tmp_path.glob("freshet-*")
            assert folder.parent == ours
            assert ours.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("failures", range(5))
    def test_a_start_that_fails_is_repeated(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
    ) -> None:
        actors = import_module("freshet.crawler.extensions.shards.ray_actors")
        fake = MagicMock()
        why = RuntimeError("The current node timed out during startup.")
        fake.init.side_effect = [*[why] * failures, None]
        monkeypatch.setattr(actors, "ray", fake)
        monkeypatch.setattr(actors, "wait_exponential", lambda *_: wait_none())
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        error = nullcontext() if failures < 4 else pytest.raises(CrawlError, match="timed out")
        with error, actors.connected(None, tmp_path / "store"):
            pass
        assert fake.init.call_count == min(failures + 1, 4)
        # Between two tries what is left of the first one ends.
        assert fake.shutdown.call_count == min(failures, 3) + 1
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("owner", ["own", "other", "none"])
    def test_no_shard_works_for_the_raylet_of_another_user(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str
    ) -> None:
        actors = import_module("freshet.crawler.extensions.shards.ray_actors")
        path = tmp_path / "raylet"
        path.touch()
        fake = MagicMock()
        node = fake._private.worker._global_node
        node.raylet_socket_name = str(path)
        if owner == "none":
            fake._private.worker._global_node = None
        monkeypatch.setattr(actors, "ray", fake)
        if owner == "other":
            monkeypatch.setattr(os, "getuid", lambda: path.lstat().st_uid + 1)
        error = pytest.raises(CrawlError, match="belongs to another user")
        with error if owner == "other" else nullcontext():
            actors.require_own_raylet()

    def test_processes_and_folders_that_outlive_a_kill_go_at_the_end_or_the_next_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        actors = import_module("freshet.crawler.extensions.shards.ray_actors")
        monkeypatch.setattr(actors, "ray", MagicMock())
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

        def working(there: Path, title: str = "ray::Agent") -> subprocess.Popen[bytes]:
            with (there / "log").open("wb") as log:
                return subprocess.Popen([title, "60"], executable=which("sleep"), stdout=log)

        others = [working(tmp_path)]
        with actors.connected(None, tmp_path / "one"):
            (left,) = tmp_path.glob("freshet-*")
            outlived = working(left)
            others.append(working(left, "tail"))
        assert outlived.wait(10) == -signal.SIGKILL
        assert not left.exists()
        left.mkdir()
        outlived = working(left)
        with actors.connected(None, tmp_path / "two"):
            assert left.exists()
            assert outlived.poll() is None
        with actors.connected(None, tmp_path / "one"):
            assert not left.exists()
            assert outlived.wait(10) == -signal.SIGKILL
        for other in others:
            assert other.poll() is None
            other.kill()
            other.wait()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--db", "file.db", "--shards", "2"), 2, "is one store; name a new folder"),
        (("--db", "folder", "--shards", "3"), 2, "`freshet shards split` changes that"),
        (("--db", "folder", "--shards", "1"), 2, "`freshet shards merge` changes that"),
        (("--db", "new", "--ray", "auto"), 2, "add --shards N"),
        (("--db", "folder"), 1, "--shards needs the extra 'ray'"),
        (("--db", "bad"), 1, "bad/shards.toml: has format; it needs epoch"),
        (("--db", "folder", "--config", "ip.toml"), 2, "it must be host or domain"),
    ],
)
@pytest.mark.parametrize("verb", ["crawl", "daemon"])
def test_options_that_do_not_fit_are_told_in_one_line(
    verb: str, options: tuple[str, ...], code: int, said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRESHET_CRAWL__CONTACT", "me@example.org")
    monkeypatch.setattr(sharded, "find_spec", lambda _name: None)
    Path("file.db").touch()
    Path("ip.toml").write_text('[politeness]\nkey = "ip"\n', "utf-8")
    Shards(Path("folder"), 2).write()
    Path("bad").mkdir()
    Path("bad/shards.toml").write_text("format = 1", "utf-8")
    given = [verb, "site.example", *(["--budget", "9/day"] if verb == "daemon" else []), *options]
    result = CliRunner().invoke(application([verb]), given)
    assert result.exit_code == code, result.output
    assert said in " ".join(result.output.split())
