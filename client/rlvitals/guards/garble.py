"""Which completions are garbled: by their ids where these and the tokenizer are known, else by their text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvitals import notices
from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.text import pack, tally_text
from rlvitals.probes.token_cache import cache_folder
from rlvitals.probes.tokens import TokenTable

REPLACEMENT = "\ufffd"
_NO_TEXT = re.compile("[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class GarbleReader:
    """Without a ``tokenizer`` the text has to do: there a replacement character may be a literal one."""

    tokenizer: Any = None
    rows: int | None = None
    _table: TokenTable | None = field(default=None)

    def faults(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]] | None, prompts: Sequence[str] | None
    ) -> list[int]:
        """Per completion: ill-formed characters, never-trained ids, and replacement or control characters written
        out. A character that the length limit cut is no fault, nor is what the prompt holds too.
        """
        asked = prompts if prompts is not None and len(prompts) == len(texts) else [""] * len(texts)
        by_text = [_faults_of(text, prompt) for text, prompt in zip(texts, asked, strict=True)]
        table = self._read() if ids is not None and len(ids) == len(texts) else None
        if ids is None or table is None or table.mismatch:
            return by_text
        numbers, lengths = pack([list(row) for row in ids])
        _, rows = tally_text(table, numbers, lengths)
        found = rows.utf8.errors + rows.never_trained
        # what ids spell as ill-formed stands in the text as replacement characters: once is enough
        return [max(int(of_ids), of_text) for of_ids, of_text in zip(found, by_text, strict=True)]

    def _read(self) -> TokenTable | None:
        """The table, read when it is first needed, which takes a good part of a second."""
        if self.tokenizer is not None and self._table is None:
            try:
                self._table = TokenTable.read(self.tokenizer, self.rows, cache=cache_folder())
            except VocabularyError as error:
                notices.once("guard:tokenizer", f"completions are judged by their text alone: {error}")
                self.tokenizer = None
        return self._table


def clean(text: str) -> str:
    """``text`` without replacement and control characters (tabs and line ends stay)."""
    return _NO_TEXT.sub("", text)


def _faults_of(text: str, prompt: str) -> int:
    inside = text.rstrip(REPLACEMENT)  # at the end: a character that the limit cut
    return sum(1 for found in _NO_TEXT.finditer(inside) if found.group() not in prompt)
