"""Split pages as public splitters do: JSON on standard input, JSON on standard output.

The input is a list of pages, each a list of the HTML and the Markdown of its content. The output
has the texts that each splitter would embed, by its name, in the order of the pages.
"""

import json
import sys
from collections.abc import Callable

from langchain_text_splitters import (
    HTMLHeaderTextSplitter,
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
)
from llama_index.core.node_parser import SentenceSplitter
from semantic_text_splitter import MarkdownSplitter

#: Of a chunk, and of the text that two neighbours of the recursive splitter share (its default).
CHARS, OVERLAP = 1_200, 200
LEVELS = range(1, 7)


def headed(parts: list, recursive: RecursiveCharacterTextSplitter) -> list[str]:
    """Return the texts under their headings, those cut that are too long."""
    return [
        "\n\n".join([" > ".join(map(str, each.metadata.values())), each.page_content])
        for each in recursive.split_documents(parts)
    ]


def splitters() -> dict[str, Callable[[str, str], list[str]]]:
    """Return functions of a page's HTML and Markdown by the names of the splitters."""
    recursive = RecursiveCharacterTextSplitter(chunk_size=CHARS, chunk_overlap=OVERLAP)
    apart = RecursiveCharacterTextSplitter(chunk_size=CHARS, chunk_overlap=0)
    of_html = HTMLHeaderTextSplitter([(f"h{n}", f"h{n}") for n in LEVELS])
    of_markdown = MarkdownHeaderTextSplitter([("#" * n, f"h{n}") for n in LEVELS])
    # In tokens, of four characters about.
    sentences = SentenceSplitter(chunk_size=CHARS // 4, chunk_overlap=OVERLAP // 4)
    semantic = MarkdownSplitter(CHARS)
    return {
        "langchain HTML headers": lambda html, _: headed(of_html.split_text(html), apart),
        "langchain Markdown headers": lambda _, text: headed(of_markdown.split_text(text), apart),
        "langchain recursive": lambda _, text: recursive.split_text(text),
        "llama-index sentences": lambda _, text: sentences.split_text(text),
        "semantic-text-splitter": lambda _, text: semantic.chunks(text),
    }


if __name__ == "__main__":
    pages = json.load(sys.stdin)
    found = {
        name: [split(html, markdown) for html, markdown in pages]
        for name, split in splitters().items()
    }
    json.dump(found, sys.stdout)
