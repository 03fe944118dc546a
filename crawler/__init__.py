"""The crawler: from a due URL to a change observation."""
