"""The command ends in order even when its user changes their mind while it starts."""

from __future__ import annotations

import pytest

from crawler.commands import entry, verbs


def test_an_interruption_while_the_program_starts_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verbs, "application", interrupted)
    with pytest.raises(SystemExit) as ended:
        entry.run()
    assert (ended.value.code, capsys.readouterr().err) == (130, "freshet: interrupted\n")
