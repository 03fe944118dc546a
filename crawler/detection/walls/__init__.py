"""Walls: pages that are no content, such as soft 404s, log-in and consent walls."""
