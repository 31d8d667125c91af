"""In which scripts the letters are written: shares, letters foreign to the prompt, drift from a run's start."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Whole
from rlvitals.probes.code_points import LAST, Points, Ranges, points_of
from rlvitals.probes.finish.text import SCRIPTS
from rlvitals.probes.spelling import SpeltRows
from rlvitals.probes.tally import Tally

LATIN, GREEK, OTHER = SCRIPTS.index("latin"), SCRIPTS.index("greek"), SCRIPTS.index("other")
SHARES = tuple(f"text.script_{name}_share" for name in SCRIPTS)
METRICS = (*SHARES, "text.foreign_script_share")
OWN_SHARE = 0.1
BASELINE_STEPS = 20

NO_PROMPTS = "the prompts were not given: what is foreign to them is not known"
BASELINE_PENDING = "the run's first steps, with which scripts are compared, are not over"

_BLOCKS: Mapping[str, Ranges] = {
    "latin": (
        (0x0041, 0x005A),
        (0x0061, 0x007A),
        (0x00AA, 0x00AA),
        (0x00BA, 0x00BA),
        (0x00C0, 0x02AF),
        (0x1D00, 0x1D25),
        (0x1D2C, 0x1D5C),
        (0x1D62, 0x1D65),
        (0x1D6B, 0x1D77),
        (0x1D79, 0x1DBE),
        (0x1E00, 0x1EFF),
        (0x2071, 0x2071),
        (0x207F, 0x207F),
        (0x2090, 0x209C),
        (0x2183, 0x2184),
        (0x2C60, 0x2C7F),
        (0xA722, 0xA7FF),
        (0xAB30, 0xAB6F),
        (0xFB00, 0xFB06),
        (0xFF21, 0xFF3A),
        (0xFF41, 0xFF5A),
        (0x10780, 0x107BF),
        (0x1DF00, 0x1DFFF),
    ),
    "han": (
        (0x3005, 0x3007),
        (0x3021, 0x3029),
        (0x3400, 0x4DBF),
        (0x4E00, 0x9FFF),
        (0xF900, 0xFAFF),
        (0x20000, 0x323AF),
    ),
    "kana": ((0x3031, 0x3035), (0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9D), (0x1AFF0, 0x1B16F)),
    "hangul": ((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xFFA0, 0xFFDC)),
    "cyrillic": ((0x0400, 0x052F), (0x1C80, 0x1C8F), (0x1D2B, 0x1D2B), (0x1D78, 0x1D78), (0xA640, 0xA69F)),
    "greek": ((0x0370, 0x03FF), (0x1D26, 0x1D2A), (0x1D5D, 0x1D61), (0x1D66, 0x1D6A), (0x1F00, 0x1FFF)),
    "arabic": ((0x0600, 0x06FF), (0x0750, 0x077F), (0x0870, 0x08FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)),
    "hebrew": ((0x0590, 0x05FF), (0xFB1D, 0xFB4F)),
    "devanagari": ((0x0900, 0x097F), (0xA8E0, 0xA8FF), (0x11B00, 0x11B5F)),
    "thai": ((0x0E00, 0x0E7F),),
}
# letters of no script: micro sign, modifiers, letter-like symbols, mathematical alphabets
_COMMON: Ranges = (
    (0x00B5, 0x00B5),
    (0x02B0, 0x02FF),
    (0x0374, 0x0374),
    (0x2100, 0x214F),
    (0x1D400, 0x1D7FF),
    (0x1EE00, 0x1EEFF),
)
# beyond it there are only letters that no Python in use knows
_LETTERS_END = 0x323B0
_NO_LETTER = len(SCRIPTS)


def tally_scripts(spelt: SpeltRows, prompts: Sequence[str] | None = None) -> Tally:
    """Tallies the letters of the completions that were spelt, by script.

    A letter is a character of category L; combining vowel signs are none, nor are the mathematical alphabets, nor
    a Greek letter that stands alone, as it does in a formula. ``prompts`` has one text for each row of the batch
    (not only of those that were spelt); letters are *foreign* where their script is neither Latin nor one that
    holds a tenth of the prompt's letters.
    """
    if spelt.reason:
        return Tally.absent(METRICS, spelt.reason)
    letters = np.stack([count_letters(points) for points in spelt.points]) if spelt.points else _NOTHING
    found = letters.sum(axis=0).tolist()
    counts = {f"script.{name}": int(number) for name, number in zip(SCRIPTS, found, strict=True)}
    tally = Tally(counts={**counts, "script.letters": int(letters.sum())})
    return tally + _foreign(spelt, letters, prompts)


def count_letters(points: Points) -> Whole:
    """Letters of a text by script, in the order of `SCRIPTS`."""
    script = _scripts()[points]
    greek = script == GREEK
    if greek.any():
        beside = np.zeros(points.size + 2, np.bool_)
        beside[1:-1] = greek
        script[greek & ~beside[:-2] & ~beside[2:]] = _NO_LETTER
    return np.bincount(script, minlength=_NO_LETTER + 1)[:_NO_LETTER]


_NOTHING = np.zeros((0, len(SCRIPTS)), np.int64)


def _foreign(spelt: SpeltRows, letters: Whole, prompts: Sequence[str] | None) -> Tally:
    if prompts is None:
        return Tally.absent(("text.foreign_script_share",), NO_PROMPTS)
    own = [_own_scripts(prompts[int(row)]) for row in spelt.read.rows]
    foreign = np.asarray([int(found[~mine].sum()) for found, mine in zip(letters, own, strict=True)], np.int64)
    counts = {"script.foreign": int(foreign.sum()), "script.prompted_letters": int(letters.sum())}
    if not foreign.any():
        return Tally(counts=counts)
    worst = int(foreign.argmax())
    where = Extreme(value=float(foreign[worst]), sample=int(spelt.read.samples[worst]))
    return Tally(counts=counts, maxima={"script.worst_foreign": where})


def _own_scripts(prompt: str) -> npt.NDArray[np.bool_]:
    letters = count_letters(points_of(prompt))
    own: npt.NDArray[np.bool_] = (letters > 0) & (letters >= OWN_SHARE * letters.sum())
    own[LATIN] = True
    return own


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptBaseline:
    """The scripts of a run's own first steps, kept by whoever runs the probes and read by nobody else.

    Each writer keeps its own: the baselines of all writers add up in the Tally as their letters do.
    """

    letters: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0
    wanted: int = BASELINE_STEPS

    def after(self, tally: Tally) -> ScriptBaseline:
        """The baseline once ``tally``, which holds one whole step of this writer, was seen."""
        if self.steps >= self.wanted or "script.letters" not in tally.counts:
            return self
        letters = {name: self.letters.get(name, 0) + tally.counts[f"script.{name}"] for name in SCRIPTS}
        return ScriptBaseline(letters=letters, steps=self.steps + 1, wanted=self.wanted)

    def tally(self) -> Tally:
        """To be added once to each step's Tally: what its scripts are compared with."""
        if self.steps < self.wanted:
            return Tally.absent(("text.script_drift",), BASELINE_PENDING)
        return Tally(counts={f"script.baseline.{name}": number for name, number in self.letters.items()})


@cache
def _scripts() -> npt.NDArray[np.uint8]:
    """The script of every character; letters of scripts without a name of their own are ``other``."""
    scripts = np.full(LAST + 1, _NO_LETTER, np.uint8)
    for point in (*range(0x3400), *range(0xA000, 0xAC00), *range(0xD7B0, 0xD800), *range(0xF900, 0x20000)):
        if unicodedata.category(chr(point)).startswith("L"):
            scripts[point] = OTHER
    for name, ranges in _BLOCKS.items():
        for first, last in ranges:
            block = scripts[first : last + 1]
            block[block == OTHER] = SCRIPTS.index(name)
    for first, last in _IDEOGRAPHS:
        scripts[first : last + 1] = SCRIPTS.index("han")
    scripts[0xAC00:0xD7A4] = SCRIPTS.index("hangul")
    for first, last in _COMMON:
        scripts[first : last + 1] = _NO_LETTER
    return scripts


# all of their characters are letters: there is no need to ask for each
_IDEOGRAPHS: Ranges = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, _LETTERS_END - 1))
