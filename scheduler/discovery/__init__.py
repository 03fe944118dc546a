"""Finding new pages by looking again at few old ones (Pandey 2008, chapter 3)."""
