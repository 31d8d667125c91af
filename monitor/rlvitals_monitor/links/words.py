"""What the pages behind links say, in English and Chinese. Names and the rules' own words go through unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from rlvitals_monitor.notify.language import Language, Phrase, phrase_of


def words_in(language: Language) -> Phrase:
    """What the messages say too stands in their catalogue."""
    known, told = CHINESE if language is Language.CHINESE else {}, phrase_of(language)

    def say(english: str, /, **values: object) -> str:
        return known[english].format(**values) if english in known else told(english, **values)

    return say


CHINESE: Mapping[str, str] = {
    "Approve this command?": "批准此命令？",
    "Deny this command?": "拒绝此命令？",
    "Look after this alert?": "由你处理此告警？",
    "Silence this alert for an hour?": "将此告警静默一小时？",
    "Approve": "批准",
    "Deny": "拒绝",
    "Acknowledge": "确认",
    "Silence for 1 h": "静默 1 小时",
    "Training pauses at the next step boundary, for at most {argument} s, and then goes on by itself.": (
        "训练将在下一个步边界暂停，最多 {argument} 秒，之后自动继续。"
    ),
    "Training goes on at the next step boundary.": "训练将在下一个步边界继续。",
    "Training writes a checkpoint at the next step boundary and ends.": "训练将在下一个步边界保存检查点并结束。",
    "Training writes a checkpoint at the next step boundary and goes on.": (
        "训练将在下一个步边界保存检查点并继续。"
    ),
    "At the next step boundary the KL coefficient becomes {argument}.": "下一个步边界起，KL 系数变为 {argument}。",
    "At the next step boundary the learning rate is multiplied by {argument}.": (
        "下一个步边界起，学习率乘以 {argument}。"
    ),
    "At the next step boundary {knob} becomes {argument}.": "下一个步边界起，{knob} 变为 {argument}。",
    "The proposal ends, and nothing is done to the run: {command}.": "建议被驳回，训练不受影响：{command}。",
    "It stands beside the alert that somebody looks after it. Reminders and escalation stop.": (
        "告警旁会注明有人处理；提醒与升级停止。"
    ),
    "No channel is told of this rule on this run until {until}. The alert stays on its page.": (
        "在 {until} 之前，任何通道都不会收到此训练上该规则的消息；页面上仍显示告警。"
    ),
    "Command": "命令",
    "Run": "训练",
    "Project": "项目",
    "Alert": "告警",
    "Value": "数值",
    "Since step": "起始步",
    "Over at step": "结束步",
    "Allowed": "允许范围",
    "{low} to {high}": "{low} 至 {high}",
    "Asked for by": "提出者",
    "Why": "原因",
    "Open until": "有效至",
    "Approved so far": "已批准",
    "{heard} of {wanted} people": "{wanted} 人中的 {heard} 人",
    "Reason, if you like": "理由（可选）",
    "You act as {who}.": "以 {who} 的身份操作。",
    "You are not signed in. It counts as one voice without a name, and is noted as from {who}.": (
        "你未登录；将计为一个匿名意见，记录为来自 {who}。"
    ),
    "Sign in to act by name": "登录后以本名操作",
    "This needs a sign-in first. You come back here.": "需要先登录；登录后会回到此页。",
    "{who} may not operate runs. Sign in with a token that may.": "{who} 无权操作训练；请用有权限的令牌登录。",
    "Sign in": "登录",
    "Open the run": "打开训练页面",
    "{what}: done": "{what}：已完成",
    "This link was used at {at} by {who}. It works once.": "此链接已于 {at} 由 {who} 使用；每个链接只能用一次。",
    "State now": "当前状态",
    "This link has expired": "此链接已过期",
    "It was good until {at}. The run's page has what can still be done.": (
        "有效期至 {at}；其余操作请在训练页面进行。"
    ),
    "This link does nothing any more": "此链接已失效",
    "What it was about is not what it was when this link was made.": "它所针对的内容在链接生成后已经改变。",
    "Nothing is left to do: {reason}.": "无需再操作：{reason}。",
    "This link is not known here": "未知的链接",
    "It may be cut off, or too old. The run's page has what can be done.": (
        "链接可能不完整或过旧；请在训练页面操作。"
    ),
    "This could not be done": "操作未能完成",
    "{reason}.": "{reason}。",
    "acknowledged by {who}": "由 {who} 确认",
}
