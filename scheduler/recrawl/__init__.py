"""Recrawling for ever under a budget: what is worth most now, learnt from what was found."""
