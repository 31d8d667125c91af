"""Past runs from the logs that people have: read by `rlvitals.formats`, given as the steps that rules judge."""
