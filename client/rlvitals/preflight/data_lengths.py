"""Lengths of prompts and answers as a bounded histogram, in tokens where a tokenizer counts and else estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

BYTES_PER_TOKEN = 4.0
"""UTF-8 bytes of one token, where no tokenizer is given: 4 letters of English, 1.3 of Chinese, 2 of Cyrillic."""
EXACT_BELOW = 8192
SAMPLED = 1000
"""Texts whose tokens are counted; the others follow from their bytes and the sample's bytes per token."""
SAMPLED_BYTES = 64 << 10
"""Longer texts are estimated too."""

CountTokens = Callable[[str], int]


@dataclass(slots=True)
class Histogram:
    """Counts of whole numbers: exact below `EXACT_BELOW`, rounded up by at most 1/512 above."""

    counts: Counter[int] = field(default_factory=Counter)
    total: int = 0

    def add(self, value: int) -> None:
        self.counts[_bucket(value)] += 1
        self.total += 1

    def quantile(self, share: float) -> int:
        """The smallest value that at least ``share`` of all do not exceed; 0 without any."""
        left = share * self.total
        for value, count in sorted(self.counts.items()):
            left -= count
            if left <= 1e-9:
                return value
        return max(self.counts, default=0)

    def share_above(self, limit: float) -> float:
        """Share of values beyond ``limit``; 0 without any."""
        above = sum(count for value, count in self.counts.items() if value > limit)
        return above / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFacts:
    """Lengths in tokens. ``counted`` texts went through the tokenizer; with 0 all is estimated from bytes."""

    histogram: Histogram
    bytes_per_token: float = BYTES_PER_TOKEN
    counted: int = 0

    @property
    def total(self) -> int:
        return self.histogram.total

    def tokens(self, share: float) -> int:
        """The quantile in tokens."""
        return -int(-self.histogram.quantile(share) // self.bytes_per_token)

    def share_above(self, limit: int) -> float:
        """Share of texts longer than ``limit`` tokens."""
        return self.histogram.share_above(limit * self.bytes_per_token)

    @classmethod
    def of_tokens(cls, lengths: list[int]) -> LengthFacts:
        """From lengths that are known in tokens."""
        histogram = Histogram()
        for length in lengths:
            histogram.add(length)
        return cls(histogram=histogram, bytes_per_token=1.0, counted=len(lengths))


class Lengths:
    """Gathers the UTF-8 bytes of all texts, and a uniform sample of texts for the tokenizer."""

    def __init__(self, count_tokens: CountTokens | None = None, seed: int = 0) -> None:
        self._count_tokens = count_tokens
        self._random = Random(seed)
        self._histogram = Histogram()
        self._sample: list[str] = []

    def add(self, text: str) -> int:
        """Returns the text's bytes."""
        size = utf8_size(text)
        self._histogram.add(size)
        if self._count_tokens is not None and size <= SAMPLED_BYTES:
            self._keep(text)
        return size

    def facts(self) -> LengthFacts:
        """Tokens follow from bytes by what the sample says: exactly so if all texts are in the sample."""
        if self._count_tokens is None or not self._sample:
            return LengthFacts(histogram=self._histogram)
        tokens = [self._count_tokens(text) for text in self._sample]
        if len(self._sample) == self._histogram.total:
            return LengthFacts.of_tokens(tokens)
        ratio = sum(utf8_size(text) for text in self._sample) / max(1, sum(tokens))
        return LengthFacts(histogram=self._histogram, bytes_per_token=max(ratio, 1e-3), counted=len(self._sample))

    def _keep(self, text: str) -> None:
        if len(self._sample) < SAMPLED:
            self._sample.append(text)
            return
        at = self._random.randrange(self._histogram.total)
        if at < SAMPLED:
            self._sample[at] = text


def utf8_size(text: str) -> int:
    """Bytes in UTF-8; a lone surrogate counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _bucket(value: int) -> int:
    if value < EXACT_BELOW:
        return max(0, value)
    step = 1 << max(0, value.bit_length() - 10)
    return -(-value // step) * step
