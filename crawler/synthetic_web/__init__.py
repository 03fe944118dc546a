"""An evolving web on loopback that knows its own truth.

``sites`` and ``web`` make it from a seed, ``truth`` says what changed when, ``answers`` says how
its servers answer, and ``server`` gives these answers on sockets or as a fetcher.
"""
