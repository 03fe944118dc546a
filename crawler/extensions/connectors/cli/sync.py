"""``freshet sync TARGET``: keep an index elsewhere in step with the store."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.config.settings import Settings
from freshet.crawler.cli.changefeed import ChunkChars
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, read_settings
from freshet.crawler.extensions.connectors.embedding import Embedder, FunctionEmbedder, HttpEmbedder
from freshet.crawler.extensions.connectors.syncing import SyncCounts, Synchronisation, count_tokens
from freshet.crawler.extensions.connectors.targets import opened
from freshet.crawler.read.chunks import CHUNK_CHARS
from freshet.crawler.read.library import Library
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import fail, say, told_in_one_line

#: The environment variable with the key of the server that embeds.
KEY: Final = "FRESHET_EMBED_KEY"


def sync_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="sqlite-vec:FILE, parquet:FOLDER, postgresql://…, qdrant:…, http(s)://…",
        ),
    ],
    db: Db = DEFAULT_DB,
    once: Annotated[
        bool, typer.Option("--once", help="End when the target is in step; else follow the store.")
    ] = False,
    embed: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="What makes vectors of a list of texts."),
    ] = None,
    embed_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"A server with OpenAI's /v1/embeddings; key: {KEY}."),
    ] = None,
    embed_model: Annotated[
        str, typer.Option(metavar="NAME", help="The model of --embed-url.")
    ] = "",
    chunk_chars: ChunkChars = CHUNK_CHARS,
    config: ConfigFile = None,
) -> None:
    """Keep an index elsewhere in step: its passages and vectors.

    Without a model no vectors are written. The target stores its place in the changefeed: a
    run that was killed continues where it ended. Only passages that the target does not have are
    embedded.
    """
    if embed is not None and embed_url is not None:
        fail("give --embed or --embed-url, not both", 2)
    settings, _ = read_settings(config, {})
    with told_in_one_line():
        embedder: Embedder | None = None
        if embed is not None:
            embedder = FunctionEmbedder(embed)
        elif embed_url is not None:
            embedder = HttpEmbedder(embed_url, embed_model, os.environ.get(KEY))
    counts = terminal.run(_sync(db, settings, target, embedder, chunk_chars, once=once))
    say("sync:", "green", f"{target}: {counts.words}")


async def _sync(
    db: Path, settings: Settings, target: str, embedder: Embedder | None, chars: int, *, once: bool
) -> SyncCounts:
    parser = parser_of(settings)
    library = Library(db, parser, settings)
    tell = partial(say, "sync:", "cyan")
    try:
        if isinstance(embedder, HttpEmbedder) and _is_new(target):
            chunks, tokens = await count_tokens(library, chars)
            tell(f"{chunks:,} passages are to be embedded, about {tokens:,} tokens")
        work = Synchronisation(library, partial(opened, target), embedder, chars, tell)
        await work.run(once=once)
        return work.counts
    finally:
        library.close()
        await parser.close()


def _is_new(target: str) -> bool:
    there = opened(target)
    try:
        return there.place() is None
    finally:
        there.close()
