"""The pages for people: what a store holds, and what its daemon does, in a browser."""
