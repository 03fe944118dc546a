"""The shortlists by which the queue finds the largest index without looking at all of them."""
