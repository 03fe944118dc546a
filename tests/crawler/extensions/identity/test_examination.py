"""What ``freshet doctor`` finds of the key and of addresses; no name server is asked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.extensions.identity.examination import examined
from freshet.crawler.extensions.identity.keys import IdentityKey, new_key, rotated, write_new

NOW, DAY = 1_796_000_000.0, 86_400.0


@dataclass
class Told:
    """A resolver that says what a test lets it say."""

    by_address: Mapping[str, str] = field(default_factory=dict)
    by_name: Mapping[str, Collection[str]] = field(default_factory=dict)

    async def name(self, address: str) -> str:
        if address not in self.by_address:
            raise OSError("no name")
        return self.by_address[address]

    async def addresses(self, name: str) -> Collection[str]:
        if name not in self.by_name:
            raise OSError("no address")
        return self.by_name[name]


def settings(**said: Any) -> Settings:
    return load(None, {f"identity.{name}": value for name, value in said.items()})[0]


async def test_nothing_is_looked_up_where_nothing_is_stated() -> None:
    assert await examined(settings(), NOW, Told()) == []


async def test_the_name_of_an_address_leads_back_to_it() -> None:
    asked = settings(
        addresses=[
            "192.0.2.1",
            "192.0.2.2",
            "192.0.2.3",
            "192.0.2.4",
            "198.51.100.0/24",
            "2001:db8::1",
        ]
    )
    names = Told(
        {
            "192.0.2.1": "crawl-1.example.org", "192.0.2.2": "crawl-1.example.org",
            "192.0.2.3": "nowhere.example.org", "2001:db8::1": "crawl-6.example.org",
        },
        {"crawl-1.example.org": {"192.0.2.1"}, "crawl-6.example.org": {"2001:db8::1"}},
    )  # fmt: skip
    found = await examined(asked, NOW, names)
    assert [(standing, words) for _, standing, words, _ in found] == [
        ("fine", "192.0.2.1 is crawl-1.example.org"),
        ("warning", "192.0.2.2 is called crawl-1.example.org, which leads elsewhere"),
        ("warning", "192.0.2.3 is called nowhere.example.org, which leads elsewhere"),
        ("warning", "192.0.2.4 has no name in the DNS"),
        ("fine", "2001:db8::1 is crawl-6.example.org"),
    ]
    assert all(bool(advice) == (standing == "warning") for _, standing, _, advice in found)


async def test_the_key_is_examined_where_requests_are_signed(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    signing = {"sign": True, "key": str(file), "directory": "https://bot.example.org/keys"}
    assert await examined(settings(**signing), NOW, Told()) == [
        ("key", "problem", f"{file}: there is no key; `freshet key new` makes one", None)
    ]
    key = new_key(NOW - DAY)
    ending = IdentityKey(key.private, key.begins, int(NOW + 3 * DAY))
    for keys, standing in (
        ([key], "fine"), ([ending], "warning"), (rotated([ending], NOW, 2, 7), "fine"),
        ([IdentityKey(key.private, key.begins, int(NOW))], "problem"),
    ):  # fmt: skip
        file.unlink(missing_ok=True)
        write_new(file, keys)
        [found] = await examined(settings(**signing), NOW, Told())
        assert found[:2] == ("key", standing), found
    [found] = await examined(settings(**{**signing, "directory": ""}), NOW, Told())
    assert found[1] == "problem"
