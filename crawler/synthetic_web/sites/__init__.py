"""Sites of different character; each module makes one from a plot."""
