"""Times in which alerts of some kind are told to nobody: silences that people ask for, and maintenance windows."""
