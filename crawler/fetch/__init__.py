"""A request politely sent, a response read within bounds."""
