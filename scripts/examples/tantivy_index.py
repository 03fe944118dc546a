"""Keep a tantivy index in step with a store: ``python tantivy_index.py crawl.db INDEX``.

The cursor is a document of the index: it is committed with the pages, so a kill loses nothing.
"""

import sys
from pathlib import Path

import tantivy

import freshet

CURSOR = "cursor"  # no page has this address


def open_index(folder: Path) -> tantivy.Index:
    folder.mkdir(exist_ok=True)
    schema = tantivy.SchemaBuilder().add_text_field("url", stored=True, tokenizer_name="raw")
    schema.add_text_field("title", stored=True).add_text_field("text").add_bytes_field("seq", True)
    return tantivy.Index(schema.build(), str(folder))


def cursor_of(index: tantivy.Index) -> str | None:
    index.reload()
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.term_query(index.schema, "url", CURSOR), 1).hits
    return bytes(searcher.doc(hits[0][1])["seq"][0]).decode() if hits else None


def keep_in_step(store: freshet.Store, index: tantivy.Index, pages_of_a_commit: int = 500) -> None:
    since, writer = cursor_of(index), index.writer()
    try:
        for n, change in enumerate(store.changefeed(since), 1):
            writer.delete_documents_by_term("url", change.id)
            if change.doc is not None:  # else the page is deleted
                title, text = change.doc.title or "", change.doc.text
                writer.add_document(tantivy.Document(url=change.id, title=title, text=text))
            writer.delete_documents_by_term("url", CURSOR)
            writer.add_document(tantivy.Document(url=CURSOR, seq=change.seq.encode()))
            if n % pages_of_a_commit == 0:
                writer.commit()
    except freshet.CursorGone:  # it belongs to another store: the next run begins anew
        writer.delete_all_documents()
    writer.commit()
    writer.wait_merging_threads()


if __name__ == "__main__":
    with freshet.Store(sys.argv[1]) as opened:
        keep_in_step(opened, open_index(Path(sys.argv[2])))
