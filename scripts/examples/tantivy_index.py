"""Keep a tantivy index in step with a store: ``python tantivy_index.py crawl.db INDEX``.

The cursor is stored after the commit. If a kill comes between, changes are applied twice: no harm.
"""

import sys
from pathlib import Path

import tantivy

import freshet


def open_index(folder: Path) -> tantivy.Index:
    folder.mkdir(exist_ok=True)
    schema = tantivy.SchemaBuilder().add_text_field("url", stored=True, tokenizer_name="raw")
    schema.add_text_field("title", stored=True).add_text_field("text")
    return tantivy.Index(schema.build(), str(folder))


def keep_in_step(store: freshet.Store, folder: Path) -> None:
    writer = open_index(folder).writer()
    place, temporary = folder / "cursor", folder / "cursor.new"
    cursor = place.read_text("ascii") if place.exists() else None
    changes = store.changefeed(cursor, start_anew=writer.delete_all_documents)
    for change in changes:
        writer.delete_documents_by_term("url", change.id)
        if change.doc is not None:  # else the page is deleted
            title, text = change.doc.title or "", change.doc.text
            writer.add_document(tantivy.Document(url=change.id, title=title, text=text))
    writer.commit()
    writer.wait_merging_threads()
    temporary.write_text(changes.cursor, "ascii")
    temporary.replace(place)


if __name__ == "__main__":
    with freshet.Store(sys.argv[1]) as opened:
        keep_in_step(opened, Path(sys.argv[2]))
