"""What alerts prove, in Chinese: a sentence as `Fired.evidence` and `witness_words` make it. Pure."""

from __future__ import annotations

import re

from rlvitals.contract.alert import LIMITS
from rlvitals_monitor.notify.language import Language, phrase_of

_EVIDENCE = re.compile(
    r"(?P<rule>\S{1,128}) from step (?P<step>\d+)"
    r"(?:: (?P<of>.{1,300}?) = (?P<value>NaN|[+-]Inf|-?[\d.e+-]+)(?: \((?P<limit>[a-z ]+ [^()]+?)\))?)?"
    r"(?:, (?P<where>.+))?"
)
_WHERE = (
    (re.compile(r"\bat position (\d+)"), r"位置 \1"),
    (re.compile(r"\bof sample (\d+)"), r"样本 \1"),
    (re.compile(r"\bhidden by the loss mask$"), "被损失掩码遮住"),
    (re.compile(r"\bunder the loss mask$"), "在损失掩码内"),
)
_LIMITS = {re.compile(re.escape(words).replace(r"\{limit\}", "(.+)")): words for words in LIMITS.values()}


def in_chinese(evidence: str) -> str:
    """As it is where it is no such sentence; names, numbers and tokens stay as they are."""
    found = _EVIDENCE.fullmatch(evidence[:2000])
    if found is None:
        return evidence
    said = f"{found['rule']} 自第 {found['step']} 步起"
    if found["of"]:
        limit = f"（{_limit(found['limit'])}）" if found["limit"] else ""
        said += f"：{found['of']} = {found['value']}{limit}"
    return f"{said}，{_where(found['where'])}" if found["where"] else said


def _limit(words: str) -> str:
    say = phrase_of(Language.CHINESE)
    known = ((pattern.fullmatch(words), english) for pattern, english in _LIMITS.items())
    return next((say(english, limit=found[1]) for found, english in known if found is not None), words)


def _where(words: str) -> str:
    for pattern, chinese in _WHERE:
        words = pattern.sub(chinese, words)
    return words
