"""The identity of the crawler towards sites: signed requests, and their keys."""
