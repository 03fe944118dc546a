"""A budget of crawls, divided by one price: what sources want at a price, and its search."""
