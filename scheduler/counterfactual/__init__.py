"""Which policy, and which budget, would have kept an archive's pages fresher? Pure."""
