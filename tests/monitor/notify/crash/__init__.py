"""A dispatcher's process is killed at every point where it matters; what it leaves is counted."""
