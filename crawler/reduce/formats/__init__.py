"""Formats of bodies, one a module; :mod:`.registry` lists them."""
