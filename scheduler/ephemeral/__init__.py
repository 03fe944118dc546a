"""Sources of ephemeral content: whom to crawl each period (Avrachenkov and Borkar 2018)."""
