"""Runs side by side: on one axis, before a band of healthy runs, with the place where they part."""
