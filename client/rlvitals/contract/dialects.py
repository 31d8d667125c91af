"""Trainers that use a common name for another quantity, told by names that they alone log.

Where one of them wrote a log, such a name stays the trainer's own: a rule that says that it is blind
is better than one that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlvitals.contract.aliases import bare


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """``marks``: one of them says whose log this is; one that ends in "/" is the beginning of names.

    ``theirs``: a name of this trainer → why its quantity is not the one that the name means elsewhere.
    """

    marks: tuple[str, ...]
    theirs: Mapping[str, str]

    def wrote(self, name: str) -> bool:
        """Whether a name, without its outermost prefix, is one of this trainer's alone."""
        return any(name.startswith(mark) if mark.endswith("/") else name == mark for mark in self.marks)


OPENRLHF = Dialect(
    marks=("actor_lr", "logprobs_diff", "ppo_clip_ratio", "is_filter_ratio", "total_length"),
    theirs={
        "kl": "OpenRLHF logs the estimator that the run chose, and 0 without a reference: not always k3",
        "response_clip_ratio": "OpenRLHF compares prompt and answer with data.max_len: 0 though all are cut",
    },
)
# the trainer with a transfer queue: the default since 0.9, main_ppo_sync in 0.8
VERL_V1 = Dialect(
    marks=("training/off_policy/", "training/num_turns/"),
    theirs={
        "response_length/clip_ratio": "this verl compares with the longest answer of its batch: never 0",
    },
)
DIALECTS = (OPENRLHF, VERL_V1)


def spoken(names: Iterable[str]) -> frozenset[int]:
    """The places in `DIALECTS` of those that logged one of ``names``."""
    found = [bare(name) for name in names]
    return frozenset(at for at, dialect in enumerate(DIALECTS) if any(map(dialect.wrote, found)))


def why_theirs(name: str, dialects: Iterable[int]) -> str:
    """Why a name is not what it seems in one of ``dialects``; an empty text where it is."""
    return next((why for at in dialects if (why := DIALECTS[at].theirs.get(bare(name)))), "")
