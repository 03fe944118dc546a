"""Writing archives: what went over the wire, as WARC files, with their index and package."""
