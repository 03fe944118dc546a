from freshet.crawler.synthetic_web.answers import PageTemplate, Slot, noise
from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.site import UTF_8, Encoding

PLACE = Place("site", "/")


def test_noise_differs_between_requests_and_repeats_with_the_seed() -> None:
    first = noise(1, PLACE, 0, 0.0, ("a", "b"))
    assert first == noise(1, PLACE, 0, 0.0, ("a", "b"))
    assert first[Slot.TOKEN] != noise(1, PLACE, 1, 0.0, ("a", "b"))[Slot.TOKEN]
    assert first[Slot.TOKEN] != noise(2, PLACE, 0, 0.0, ("a", "b"))[Slot.TOKEN]


def test_the_time_stamp_is_that_of_the_web() -> None:
    assert noise(1, PLACE, 0, 86_399.0, ())[Slot.RENDERED_AT] == "1970-01-01 23:59:59 UTC"


def test_visitors_are_counted_upwards() -> None:
    counts = [int(noise(1, PLACE, n, 0.0, ())[Slot.VISITORS]) for n in range(20)]
    assert counts == sorted(set(counts))


def test_a_template_is_filled_in_order() -> None:
    values = noise(1, PLACE, 0, 0.0, ())
    template = PageTemplate.of(["a", Slot.TOKEN, Slot.NONCE, "b", "c"], UTF_8)
    assert template.fill(values).decode() == f"a{values[Slot.TOKEN]}{values[Slot.NONCE]}bc"


def test_a_template_keeps_the_mark_and_the_codec() -> None:
    encoding = Encoding("utf-16-le", mark=b"\xff\xfe")
    values = noise(1, PLACE, 0, 0.0, ("ü",))
    assert PageTemplate.of(["ä", Slot.ADVERT], encoding).fill(values).decode("utf-16") == "äü"


def test_what_a_codec_lacks_becomes_a_reference() -> None:
    assert PageTemplate.of(["ж–"], Encoding("cp1252")).fill({}) == b"&#1078;\x96"
