"""The file of keys: who may read it, and what is wrong with it."""

import json
from pathlib import Path

import pytest

from freshet.config.loading import load
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.identity.agent import check
from freshet.crawler.extensions.identity.keys import (
    IdentityKey,
    new_key,
    read_keys,
    rotated,
    write_again,
    write_new,
)

DAY = 86_400


def as_values(key: IdentityKey) -> tuple[str, int, int | None]:
    return key.thumbprint, key.begins, key.ends


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "freshet" / "key.json"


def test_keys_are_read_as_they_were_written_by_their_owner_alone(file: Path) -> None:
    keys = [new_key(1_000.0)]
    write_new(file, keys)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [as_values(it) for it in read_keys(file)] == [as_values(it) for it in keys]
    turned = rotated(keys, 2_000.0, 2, 7)
    write_again(file, turned)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [as_values(it) for it in read_keys(file)] == [as_values(it) for it in turned]
    assert [(it.begins, it.ends) for it in turned] == [
        (1_000, 2_000 + 9 * DAY),
        (2_000 + 2 * DAY, None),
    ]
    assert [each.name for each in file.parent.iterdir()] == ["key.json"]


def test_a_key_that_is_there_stays(file: Path) -> None:
    write_new(file, [new_key(0)])
    before = file.read_bytes()
    with pytest.raises(CrawlError, match="there is a key already; `freshet key rotate`"):
        write_new(file, [new_key(0)])
    assert file.read_bytes() == before


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_refused(file: Path, mode: int) -> None:
    write_new(file, [new_key(0)])
    file.chmod(mode)
    with pytest.raises(CrawlError, match=rf"others may read this key \({mode:04o}\); `chmod 600"):
        read_keys(file)


def test_no_key_is_told_in_one_line(file: Path) -> None:
    with pytest.raises(CrawlError, match="there is no key; `freshet key new` makes one"):
        read_keys(file)


GOOD = json.loads(
    '{"kty": "OKP", "crv": "Ed25519", "nbf": 0, "use": "sig",'
    '"d": "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU",'
    '"x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}'
)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "[]", "{}", "null", '{"keys": 1}', '{"keys": [1]}', '{"keys": [{}]}', "\x00",
        '{"keys": []}', "-----BEGIN PRIVATE KEY-----", "[" * 100_000,
        *(json.dumps({"keys": [GOOD | {name: value}]}) for name, value in (
            ("kty", "RSA"), ("crv", "X25519"), ("d", "AAAA"), ("d", 7), ("d", "ä" * 43),
            ("x", "AAAA"), ("nbf", "soon"), ("nbf", None), ("exp", []), ("d", "A" * 43),
        )),
    ],
)  # fmt: skip
def test_what_is_no_file_of_keys_is_told_in_one_line(file: Path, text: str) -> None:
    write_new(file, [])
    file.write_text(text)
    wanted = r"it is not of `freshet key new` \(.+\); restore it"
    with pytest.raises(CrawlError, match=wanted) as told:
        read_keys(file)
    assert "\n" not in str(told.value)


def test_the_file_of_a_good_key_is_read(file: Path) -> None:
    write_new(file, [])
    file.write_text(json.dumps({"keys": [GOOD]}))
    assert read_keys(file)[0].thumbprint == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"


def test_a_simulation_needs_no_key(tmp_path: Path) -> None:
    said = {"sign": True, "key": str(tmp_path / "none.json"), "directory": "https://bot.example/k"}
    settings = load(None, {f"identity.{name}": value for name, value in said.items()})[0]
    with pytest.raises(CrawlError, match="there is no key"):
        check(settings)
    check(settings.silent())
