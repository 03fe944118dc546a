"""Discovery of new pages by visits to few hub pages (Pandey 2008, chapter 3)."""
