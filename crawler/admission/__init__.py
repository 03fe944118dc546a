"""Admission: from seeds, links and redirects to the URLs that are crawled."""
