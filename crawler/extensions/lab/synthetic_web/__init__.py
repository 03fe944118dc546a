"""An evolving web that knows its own truth.

``sites`` and ``difficult_sites`` make it from a seed, ``web`` says what changed when, ``answers``
how its servers answer, and ``fetcher`` gives these answers without sockets.
"""
