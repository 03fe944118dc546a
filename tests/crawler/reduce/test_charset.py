"""Which encoding a document is in."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce import charset
from freshet.crawler.reduce.charset import _MARKUP, decode

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。 " * 20
POLISH = "Zażółć gęślą jaźń, a potem pójdź, kiń tę chmurność w głąb flaszy. " * 5
FRENCH = "Le cœur a ses raisons que la raison ne connaît point. Où êtes-vous né ? " * 5


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"),
     (codecs.BOM_UTF16_BE, "utf-16be")],
)  # fmt: skip
def test_a_byte_order_mark_beats_every_declaration_and_is_not_text(
    mark: bytes, encoding: str
) -> None:
    body = mark + '<meta charset="koi8-r">é'.encode(encoding)
    assert decode(body, "text/html; charset=windows-1251") == ('<meta charset="koi8-r">é', encoding)


def test_the_header_beats_the_documents_own_words() -> None:
    body = '<meta charset="utf-8">Привет'.encode("cp1251")
    text, encoding = decode(body, 'text/html; boundary=x; Charset="WINDOWS-1251"')
    assert text.endswith("Привет")
    assert encoding == "windows-1251"


@pytest.mark.parametrize(
    "start",
    [
        '<meta charset="koi8-r">',
        "<META CHARSET=KOI8-R/>",
        "<meta content='text/html; charset=koi8-r' http-equiv='Content-Type'>",
        '<!-- <meta charset="gbk"> --><meta charset="koi8-r">',
        '<meta name="description" content="charset=gbk"><meta charset="koi8-r">',
        '<?xml version="1.0" encoding="koi8-r"?>',
        f"<!-- {'long ' * 400} --><meta charset=koi8-r>",
    ],
)
def test_the_document_may_declare_its_encoding(start: str) -> None:
    text, encoding = decode((start + "Привет").encode("koi8-r"), "text/html")
    assert text == start + "Привет"
    assert encoding == "koi8-r"


@pytest.mark.parametrize(
    ("label", "name"),
    [("iso-8859-1", "windows-1252"), ("latin1", "windows-1252"), ("gb2312", "gbk"),
     ("x-sjis", "shift_jis"), ("ks_c_5601-1987", "euc-kr"), (" UTF8 ", "utf-8")],
)  # fmt: skip
def test_labels_mean_what_the_whatwg_table_says(label: str, name: str) -> None:
    assert decode(b"abc", f"text/html; charset={label}") == ("abc", name)


@pytest.mark.parametrize("label", ["no-such-charset", "utf-7", "hz-gb-2312", "'"])
def test_an_unknown_label_gives_way_to_the_next_source(label: str) -> None:
    body = '<meta charset="windows-1251">Да'.encode("cp1251")
    assert decode(body, f"text/html; charset={label}")[1] == "windows-1251"


def test_utf_16_is_recognised_by_its_xml_declaration_and_in_ascii_means_utf_8() -> None:
    in_ascii = '<meta charset="utf-16">é'
    assert decode(in_ascii.encode(), None) == (in_ascii, "utf-8")
    text = '<?xml version="1.0"?><p>é</p>'
    assert decode(text.encode("utf-16-le"), None) == (text, "utf-16le")
    assert decode(text.encode("utf-16-be"), None) == (text, "utf-16be")


def test_without_a_label_utf_8_is_utf_8_and_a_stray_byte_a_replacement_character() -> None:
    assert decode("naïve".encode(), None) == ("naïve", "utf-8")
    assert decode(b"", None) == ("", "utf-8")
    assert decode(b"a\xffb", "text/html; charset=utf-8") == ("a�b", "utf-8")
    body = JAPANESE.encode() + b"\xff" + JAPANESE.encode()
    assert decode(body, None) == (JAPANESE + "�" + JAPANESE, "utf-8")


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [(RUSSIAN, "cp1251", "windows-1251"), (RUSSIAN, "koi8-r", "koi8-r"),
     (JAPANESE, "cp932", "shift_jis"), (JAPANESE, "euc-jp", "euc-jp"),
     (FRENCH, "cp1252", "windows-1252"), (POLISH, "cp1250", "windows-1250"),
     (POLISH, "iso8859-2", "iso-8859-2"), (RUSSIAN, "cp866", "ibm866"),
     (RUSSIAN, "mac-cyrillic", "x-mac-cyrillic"), (RUSSIAN, "cp855", "ibm855"),
     (JAPANESE, "iso2022_jp", "iso-2022-jp"), (RUSSIAN, "utf-16-le", "utf-16le"),
     ("All is well. " * 50, "utf-16-be", "utf-16be"),
     ("Don’t worry. " + "All is well. " * 50, "cp1252", "windows-1252")],
)  # fmt: skip
def test_without_any_label_the_encoding_is_guessed(text: str, codec: str, name: str) -> None:
    assert decode(text.encode(codec), "text/html") == (text, name)


@pytest.mark.parametrize(
    ("text", "label", "codec"),
    [("①㈱髙", "shift_jis", "cp932"), ("똠방각하", "euc-kr", "cp949"), ("€", "gbk", "gb18030")],
)
def test_the_standards_encodings_have_more_characters_than_pythons_of_that_name(
    text: str, label: str, codec: str
) -> None:
    assert decode(text.encode(codec), f"text/html; charset={label}") == (text, label)


def test_a_guess_looks_at_a_part_of_a_long_document_and_not_into_a_character() -> None:
    text = "plain text " * 5000 + JAPANESE * 40
    assert decode(text.encode("cp932"), None)[1] == "shift_jis"


@given(st.binary(), st.one_of(st.none(), st.text()))
def test_any_bytes_under_any_header_decode_to_text_that_can_be_encoded(
    body: bytes, content_type: str | None
) -> None:
    text, encoding = decode(body, content_type)
    text.encode()
    assert encoding == encoding.lower()


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_what_was_encoded_and_declared_comes_back(text: str) -> None:
    text = text.lstrip("\ufeff")
    assert decode(text.encode(), "text/plain; charset=utf-8") == (text, "utf-8")


@pytest.mark.parametrize(
    "start",
    [
        "<p x<!--><meta charset=windows-1251>",
        "<html x<!--y=1><head><meta charset=windows-1251>",
        "<p a='<!--'><meta charset=windows-1251>",
        '<p a="<!--"><meta charset=windows-1251>',
        "<p a=<!--b><meta charset=windows-1251>",
        "<x<!--><meta charset=windows-1251>",
        "<!--><meta charset=windows-1251>",
        "<!doctype a<!--b><meta charset=windows-1251>",
        "<?x <!-- ?><meta charset=windows-1251>",
        "</p x<!--><meta charset=windows-1251>",
        "<meta content='>' charset=windows-1251>",
        "<meta name=<!-- charset=windows-1251>",
        "<p a='<meta charset=utf-8>'><meta charset=windows-1251>",
        '<p a="<meta charset=koi8-r>"><meta charset=windows-1251>',
        "<!--<meta charset=utf-8>--><meta charset=windows-1251>",
        "<p it's><meta charset=windows-1251>",
        "<!-- ' --><?xml version='1.0' encoding='windows-1251'?>",
    ],
)
def test_a_declaration_is_found_as_the_standard_scans_for_it(start: str) -> None:
    assert decode(f"{start}<p>Дом".encode("windows-1251"), "text/html") == (
        f"{start}<p>Дом", "windows-1251",
    )  # fmt: skip


@pytest.mark.parametrize(
    "unit", ["<", "<a", "<a ", "<a b=", "<a b='", "<!--", "<!-- -", "<meta a", "<a/"]
)
def test_any_start_is_scanned_in_linear_time(unit: str) -> None:
    # Each of these takes minutes in a scan that is quadratic, were it not bounded.
    list(_MARKUP.finditer(unit.encode() * 300_000))


@pytest.mark.parametrize(
    "start",
    [
        b"<meta charset=utf-8>",
        b"<!doctype html><html><head><META  CHARSET='UTF-8' />",
        b"<meta name=a content='x'><meta charset=\"utf-8\">",
        b"<p>It's here<meta charset=utf-8>",
        b"<!-- <meta charset=utf-8> --><meta charset=koi8-r>",
        b"<meta charset=koi8-r><meta charset=utf-8>",
        b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><meta charset=utf-8>",
        b"<meta http-equiv=Content-Type content='text/html'><meta charset=utf-8>",
        b'<div title="<meta charset=utf-8>"><meta charset=koi8-r>',
        b"<div title='a>b<meta charset=utf-8>'><meta charset=koi8-r>",
        b'<div title="a>b<meta charset=utf-8>"><meta charset=koi8-r>',
        b"<div <meta charset=utf-8><meta charset=koi8-r>",
        b"<?xml version='1.0' encoding='koi8-r'?><meta charset=utf-8>",
        b"<meta charset=utf-80><meta charset=koi8-r>",
    ],
)
@pytest.mark.parametrize("header", [None, "text/html", "text/html; charset=koi8-r"])
def test_the_usual_beginning_is_read_as_the_prescan_reads_it(
    start: bytes, header: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = decode(start + b"\xd1\x82", header)
    monkeypatch.setattr(charset, "_says_utf8", lambda _start: False)
    assert decode(start + b"\xd1\x82", header) == found
