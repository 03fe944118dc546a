"""The scheduler: from observations to what is fetched next."""
