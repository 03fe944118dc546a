"""Lists of what others watch, as entries for a site list of ours."""
