"""Questions to the store that read several tables."""
