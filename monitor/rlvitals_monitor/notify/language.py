"""What we say, in English and Chinese. Pure; names, numbers and the rules' own words go through unchanged."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Language(str, Enum):
    """Of what we say; names and the rules' own words stay as they are."""

    ENGLISH = "en"
    CHINESE = "zh"


class Phrase(Protocol):
    def __call__(self, english: str, /, **values: object) -> str:
        """The English sentence in the language at hand, with the values in their places."""
        ...


def phrase_of(language: Language) -> Phrase:
    known = _CHINESE if language is Language.CHINESE else {}

    def say(english: str, /, **values: object) -> str:
        sentence = known.get(english, english)
        return sentence.format(**values) if values else sentence

    return say


_CHINESE = {
    "{state}: {rule} on {run}": "{state}：{rule}，训练 {run}",
    "INFO": "提示",
    "WARNING": "警告",
    "CRITICAL": "严重",
    "RESOLVED": "已恢复",
    "PENDING": "待定",
    "INACTIVE": "未触发",
    "Run": "训练",
    "Project": "项目",
    "Since step": "起始步",
    "Resolved at step": "恢复于步",
    "Value": "数值",
    "Value of {metric}": "{metric} 的数值",
    "{value} (threshold {limit})": "{value}（阈值 {limit}）",
    "missing": "缺失",
    "Proposed": "建议操作",
    "What to do": "处理办法",
    "Open the run at step {step}": "打开第 {step} 步的训练页面",
}
