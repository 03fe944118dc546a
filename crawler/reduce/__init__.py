"""A response reduced to blocks of text, links and a sketch."""
