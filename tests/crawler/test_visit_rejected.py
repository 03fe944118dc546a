"""A response that is no content: its validators are kept, and a 304 says that it is the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from freshet.crawler.compare.not_content.host import RULES
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.frontier import PageRequest
from freshet.crawler.reduce.sketch import body_digest
from freshet.storage.records import Digests, DueUrl, Rejected, Validators, Visit
from tests.crawler.stages import DUE, NOON, NOT_FOUND, PAGE, TOO_MANY, Stages, answer, no_answer

MODIFIED = "Sat, 01 Aug 2026 10:00:00 GMT"
PAGES = {
    "soft_404": NOT_FOUND,
    "error_page": b"<title>Internal Server Error</title>"
    b"<script>page={'status': 500}</script><h1>Internal Server Error</h1>"
    b"<p>An error occurred on the server.</p>",
    "login_wall": b"<title>Log in</title><script>page={'status': 401}</script>"
    b"<h1>Log in</h1><p>Please log in to continue.</p>"
    b"<form><input name=user><input type=password><button>Log in</button></form>",
    "captcha": b"<title>Verify you are human</title><h1>Verify that you are human</h1>"
    b"<div class=g-recaptcha data-sitekey=a></div>",
    "rate_limited_page": TOO_MANY,
}
HEADERS: Mapping[str, Mapping[str, Any]] = {
    "etag": {"ETag": '"w"'},
    "weak": {"ETag": 'W/"w"'},
    "modified": {"Last_Modified": MODIFIED},
    "both": {"ETag": '"w"', "Last_Modified": MODIFIED},
}


@pytest.fixture
def stages() -> Stages:
    return Stages()


def again(visit: Visit, due: DueUrl = DUE) -> DueUrl:
    """The URL after a visit, as the store has it due again."""
    assert visit.validators is not None
    return replace(due, rejected=visit.rejected, validators=visit.validators)


async def asked(stages: Stages, due: DueUrl) -> Request:
    stages.world.supply(due)
    # A host that turned us away is left alone for a while.
    (request,) = stages.world.requests(NOON + 3_600.0)
    assert isinstance(request, PageRequest)
    stages.answers.results.append(answer())
    await stages.pipeline.visit(request)
    return stages.answers.asked[-1]


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("kind", PAGES)
async def test_validators_of_a_rejected_page_are_kept_and_sent(
    stages: Stages, kind: str, headers: str
) -> None:
    visit = await stages.take(answer(PAGES[kind], **HEADERS[headers]))
    assert (visit.observation.kind, visit.observation.reason) == ("failed", kind)
    given = HEADERS[headers]
    assert visit.validators == Validators(given.get("ETag"), given.get("Last_Modified"))
    assert (await asked(stages, again(visit))).validators == visit.validators


@pytest.mark.parametrize("kind", PAGES)
async def test_a_304_of_a_rejected_page_is_the_same_failure(stages: Stages, kind: str) -> None:
    first = await stages.take(answer(PAGES[kind], ETag='"w"'))
    result = replace(no_answer("not_modified", 304, ""), reason=None, detail=None)
    second = await stages.take(result, again(first))
    assert (second.observation.kind, second.observation.reason) == ("failed", kind)
    assert second.rejected == first.rejected
    assert second.capture is None


async def test_content_that_gave_way_to_a_block_page_is_unchanged_when_it_is_back(
    stages: Stages,
) -> None:
    seen = replace(DUE, digests=Digests(body_digest(PAGE), None), validators=Validators('"c"'))
    wall = await stages.take(answer(NOT_FOUND, ETag='"w"'), seen)
    assert wall.validators == Validators('"w"')
    back = await stages.take(answer(PAGE, ETag='"c"'), again(wall, seen))
    assert (back.observation.kind, back.observation.rung) == ("unchanged", "body")
    assert (back.validators, back.rejected) == (Validators('"c"'), None)


async def test_a_304_by_time_is_believed_once(stages: Stages) -> None:
    first = await stages.take(answer(NOT_FOUND, Last_Modified=MODIFIED))
    result = replace(no_answer("not_modified", 304, ""), reason=None, detail=None)
    second = await stages.take(result, again(first))
    assert second.validators == Validators()


async def test_what_other_rules_rejected_is_asked_in_full(stages: Stages) -> None:
    old = replace(
        DUE, validators=Validators('"w"'), rejected=Rejected(b"\0" + bytes(16), "soft_404", NOON)
    )
    assert (await asked(stages, old)).validators is None


@pytest.mark.parametrize("kind", PAGES)
async def test_equal_bytes_are_known_since_they_were_first_seen(stages: Stages, kind: str) -> None:
    first = await stages.take(answer(PAGES[kind]))
    assert first.rejected == Rejected(RULES + body_digest(PAGES[kind]), kind, NOON)
    second = await stages.take(answer(PAGES[kind], at=NOON + 60), again(first))
    assert second.rejected == first.rejected
    other = await stages.take(answer(PAGES[kind] + b"<!-- -->", at=NOON + 90), again(first))
    assert other.rejected is not None
    assert other.rejected.since == NOON + 90


async def test_a_failure_to_fetch_changes_nothing_of_it(stages: Stages) -> None:
    first = await stages.take(answer(NOT_FOUND, ETag='"w"'))
    failed = await stages.take(no_answer("failed", None, "timeout_headers"), again(first))
    assert (failed.rejected, failed.validators) == (None, None)
