"""One step's dumped completions → metrics of the registry, and the few completions worth keeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Extreme
from rlvitals.formats.dumps import Dump
from rlvitals.guard import Guard
from rlvitals.integrations.loop.facts import Facts
from rlvitals.integrations.loop.rollouts import Rollout, RolloutReader, even_groups
from rlvitals.integrations.samples import Sample
from rlvitals.probes.arrays import Whole
from rlvitals.probes.chosen import chosen_mask
from rlvitals.probes.code_points import points_of
from rlvitals.probes.duplicates import METRIC as DUPLICATES
from rlvitals.probes.duplicates import tally_keys
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.scripts import ScriptBaseline, tally_scripts
from rlvitals.probes.spelling import SpeltRows
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import pack

REPLACED = "text.decoded_replacement_count"
OF_TEXT = frozenset(
    {m.name for m in METRICS if m.name.startswith("text.script_")}
    | {"text.foreign_script_share", "text.compression_ratio", DUPLICATES, REPLACED}
)
"""What the text alone tells, the same as from its ids."""
OF_TOKENS = frozenset(
    f"text.{name}"
    for name in (
        *("repetition_4gram", "looping_completions", "longest_run", "top_id_share"),
        *("control_char_per_1k", "zero_width_per_1k"),
    )
)
"""What is told of the text encoded again: it differs by how the tokenizer would have written it."""
OF_COUNTS = frozenset({"length.completions", "length.empty_rate"})
FROM_TEXT = "not measured: the dump holds decoded text without special tokens, not the ids that were sampled"
NO_TOKENIZER = "not measured: `rlvitals tail` was given no --tokenizer"
_GENERATED = tuple(m.name for m in METRICS if m.family in (Family.TEXT, Family.LENGTH))
_LENGTHS = {True: "retokenized/length", False: "text/characters"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What one dump tells. ``values`` may hold names of our own beside the registry's: lengths of text encoded
    again (``retokenized/length/…``) or, without a tokenizer, in characters (``text/characters/…``).
    """

    values: Mapping[str, float]
    missing: Mapping[str, str]
    extremes: Mapping[str, Extreme]
    samples: Sequence[Sample]


@dataclass(slots=True)
class DumpReader:
    """``tokenizer`` is what `TokenTable.read` takes and can ``encode``, or None."""

    tokenizer: Any = None
    keep: bool = True
    _reader: RolloutReader = field(init=False)
    _baseline: ScriptBaseline = field(default_factory=ScriptBaseline)

    def __post_init__(self) -> None:
        self._reader = RolloutReader.of(Facts(tokenizer=self.tokenizer), ranks=1, keep=self.keep)

    @property
    def encodes(self) -> bool:
        return self._reader.text.table is not None

    def read(self, dump: Dump) -> Texts:
        """Groups are the completions of one prompt. Parts that cannot be read are missing, the rest stands."""
        order, groups = _by_prompt(dump.prompts)
        texts = [dump.completions[row] for row in order]
        prompts = [dump.prompts[row] for row in order]
        rewards = {name: [values[row] for row in order] for name, values in dump.rewards.items()}
        ids, lengths = pack([self._ids(text) for text in texts])
        told = Rollout.of(ids, lengths, frozenset(), 0)
        tally, totals, rows = _counted(told, texts), None, None
        with Guard("reading dumped texts"):
            if self.encodes:
                found, rows = self._reader.texts(told, prompts, groups, dump.step)
                tally += found
            else:
                tally += self._plain(told, texts, prompts, groups, dump.step)
        with Guard("reading dumped rewards"):
            named: Any = rewards if len(rewards) > 1 else next(iter(rewards.values()), None)
            found, totals = self._reader.rewards(told, named, groups)
            tally += found
        samples: list[Sample] = []
        with Guard("keeping dumped completions"):
            samples = self._samples(self._reader.samples(told, rows, totals, None, prompts, texts), order)
        return self._told(tally, texts, lengths, samples)

    def _ids(self, text: str) -> Sequence[int]:
        if not self.encodes:
            return [ord(character) for character in text]
        try:
            found = self.tokenizer.encode(text, add_special_tokens=False)
        except TypeError:  # one without special tokens of its own
            found = self.tokenizer.encode(text)
        return getattr(found, "ids", found)  # type: ignore[no-any-return]

    def _plain(
        self, told: Rollout, texts: Sequence[str], prompts: Sequence[str], groups: Sequence[int], step: int
    ) -> Tally:
        """Characters stand for tokens; only what does not depend on tokens is told of them."""
        sample = RowSample.of_step(told.size, told.ids.size, seed=step)
        mask = chosen_mask(told.lengths, told.ids.shape)
        read = sample.take(told.ids, mask, 0)
        drawn = [texts[row] for row in read.samples]
        spelt = SpeltRows(
            read=read,
            texts=tuple(drawn),
            points=tuple(points_of(text) for text in drawn),
            inside=tuple(np.zeros(len(text), np.bool_) for text in drawn),
        )
        scripts = tally_scripts(spelt, list(prompts))
        drift = self._baseline.tally()
        self._baseline = self._baseline.after(scripts)
        packed = tally_repetition(told.ids, told.lengths, spelt=spelt, sample=sample)
        size = even_groups(groups)
        duplicates = tally_keys(texts, size, 0) if size else Tally.zero()
        return scripts + drift + packed + duplicates

    def _samples(self, samples: Sequence[Sample], order: Sequence[int]) -> list[Sample]:
        """Numbered by their place in the dump; ids that were not sampled are not shown."""
        return [
            replace(sample, sample=order[sample.sample], token_ids=(), invalid_utf8=None) for sample in samples
        ]

    def _told(self, tally: Tally, texts: Sequence[str], lengths: Whole, samples: Sequence[Sample]) -> Texts:
        found = tally.measured()
        if self._reader.text.table is not None:
            found = self._reader.text.table.named(found)
        kept = OF_TEXT | OF_COUNTS | (OF_TOKENS if self.encodes else frozenset())

        def holds(name: str) -> bool:
            return name in kept or name not in _GENERATED

        values = {name: value for name, value in found.values.items() if holds(name)}
        values[REPLACED] = float(sum(text.count("\ufffd") for text in texts))
        if lengths.size:
            kind = _LENGTHS[self.encodes]
            values |= {f"{kind}/mean": float(np.mean(lengths)), f"{kind}/max": float(np.max(lengths))}
        missing = {name: why for name, why in found.missing.items() if holds(name)}
        missing |= {n: NO_TOKENIZER if n in OF_TOKENS else FROM_TEXT for n in _GENERATED if n not in kept}
        return Texts(
            values=values,
            missing={name: why for name, why in missing.items() if name not in values},
            extremes={name: extreme for name, extreme in found.extremes.items() if holds(name)},
            samples=samples,
        )


def _counted(told: Rollout, texts: Sequence[str]) -> Tally:
    return tally_lengths(told.lengths, told.last_ids, (), None) if texts else Tally.zero()


def _by_prompt(prompts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Rows with those of one prompt together, in the order of their first; and each one's group."""
    number = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    order = sorted(range(len(prompts)), key=lambda row: (number[prompts[row]], row))
    return order, [number[prompts[row]] for row in order]
