"""The pages for people: a store and its daemon in a browser."""
