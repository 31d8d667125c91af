"""Incidents: what a run's alerts mean together, told as a list, as a story and as a post-mortem."""
