"""Logs that trainers write anyway, read line by line: what was logged, at which step, which lines are broken.

A reader takes lines and gives `Row`s and `BadLine`s; it keeps a bounded state, so that it follows a growing file
as well as it reads an old one. Names are the trainer's own; `rlvitals.contract.aliases` says what they mean here.
"""
