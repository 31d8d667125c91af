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
    "{value} ({limit})": "{value}（{limit}）",
    "fires below {limit}": "低于 {limit} 时触发",
    "fires at {limit} or below": "不高于 {limit} 时触发",
    "fires above {limit}": "高于 {limit} 时触发",
    "fires at {limit} or above": "不低于 {limit} 时触发",
    "fires at {limit}": "等于 {limit} 时触发",
    "fires at anything but {limit}": "不等于 {limit} 时触发",
    "threshold {limit}": "阈值 {limit}",
    "missing": "缺失",
    "Proposed": "建议操作",
    "What to do": "处理办法",
    "Open the run at step {step}": "打开第 {step} 步的训练页面",
    "Open the runs": "打开训练列表",
    "Open {about}": "打开 {about}",
    "Acknowledge": "确认",
    "Silence for 1 h": "静默 1 小时",
    "Approve {about}": "批准 {about}",
    "Deny {about}": "拒绝 {about}",
    "{state}, still open: {rule} on {run}": "{state}，仍未恢复：{rule}，训练 {run}",
    "{state}, acknowledged by nobody: {rule} on {run}": "{state}，无人确认：{rule}，训练 {run}",
    "{rule} and {more} more": "{rule} 等，另有 {more} 条",
    "{more} more": "另有 {more} 条",
    "Lasted": "持续",
    "{steps} steps": "{steps} 步",
    "{days} d {hours} h": "{days} 天 {hours} 小时",
    "{hours} h {minutes} min": "{hours} 小时 {minutes} 分钟",
    "{minutes} min": "{minutes} 分钟",
    "{seconds} s": "{seconds} 秒",
    "Also": "其他告警",
    "Symptoms": "伴随症状",
    "Diagnosis": "诊断",
    "{headline} ({confidence} confidence).": "{headline}（置信度：{confidence}）。",
    "high": "高",
    "medium": "中",
    "low": "低",
    "What to change": "修改哪些配置",
    "What it is not": "不是什么",
    "Trend": "趋势",
    "steps {first} to {last}": "第 {first} 至 {last} 步",
    "{low} to {high}": "{low} 至 {high}",
    "Worst sample of step {step}": "第 {step} 步最差样本",
    "{count} ill-formed sequences": "{count} 处非法字节",
    "reward {reward}": "奖励 {reward}",
    "{label} ({told})": "{label}（{told}）",
    "{rule} resolved at step {step}": "{rule} 于第 {step} 步恢复",
    "{rule} ({state}) since step {step}: {value}": "{rule}（{state}）自第 {step} 步：{value}",
    "{state}: {changes} changes of alerts in {runs} runs": "{state}：{runs} 个训练共 {changes} 次告警变化",
    "{firing} firing, {resolved} resolved.": "触发 {firing} 次，恢复 {resolved} 次。",
    "{firing} firing, {resolved} resolved": "触发 {firing} 次，恢复 {resolved} 次",
    "{more} more runs": "另外 {more} 个训练",
}
