"""Change process × policy → realised cost: no HTML, no HTTP, seeded."""
