"""What a trainer's dumped completions tell: texts, rewards and groups, with a tokenizer and without.

Dumps are decoded text without special tokens. What depends on the ids that were sampled (ill-formed bytes, stops,
truncation, lengths) is missing with that reason; nothing is told as measured that was only encoded again.
"""

from __future__ import annotations

from rlvitals.integrations.dumps.texts import DumpReader, Texts

__all__ = ["DumpReader", "Texts"]
