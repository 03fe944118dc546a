"""The store: one SQLite file, its schema, and the nouns that cross packages."""
