"""Readers: the pages that they open of lists, and the worth of pages to them and to searchers."""
