"""The past as a laboratory: what came of policies before an archive, as one page and as tables."""
