"""The extensions that come with Freshet: each a folder, found by its entry points alone."""
