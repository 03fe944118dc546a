"""An evolving web on loopback that knows its own truth.

``sites`` and ``web`` make it from a seed, ``truth`` and ``reach`` say what is so, ``answers``
says what a server would say; ``server`` and ``fetcher`` are two doors to the same answers.
"""
