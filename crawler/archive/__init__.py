"""Archives of responses, written and read: WARC, CDXJ, WACZ."""
