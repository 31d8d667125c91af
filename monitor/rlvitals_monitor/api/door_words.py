"""What the pages of the door say, in English and Chinese. Names go through unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request

from rlvitals.contract.language import COOKIE, preferred
from rlvitals_monitor.access.password import CHARS_MAX, CHARS_MIN
from rlvitals_monitor.notify.language import Language, Phrase


def language_of(request: Request) -> Language:
    """What the visitor chose on the dashboard, else what the browser asks for."""
    chosen = request.cookies.get(COOKIE, "") or preferred(request.headers.get("accept-language", ""), ("en", "zh"))
    return Language.CHINESE if chosen.partition("-")[0] == Language.CHINESE.value else Language.ENGLISH


def words_in(language: Language) -> Phrase:
    known = CHINESE if language is Language.CHINESE else {}

    def say(english: str, /, **values: object) -> str:
        sentence = known.get(english, english)
        return sentence.format(**values) if values else sentence

    return say


def sentence(fault: str, language: Language) -> str:
    """A fault, which begins small and has no end, as a sentence."""
    if language is Language.CHINESE:
        return f"{CHINESE.get(fault, fault)}。"
    return f"{fault[:1].upper()}{fault[1:]}."


CHINESE: Mapping[str, str] = {
    "sign in": "登录",
    "welcome": "欢迎",
    "Sign in": "登录",
    "Sign in by the link that the service printed at its start, or make another: rlvitals login-link": (
        "请使用服务启动时打印的链接登录，或重新生成一个：rlvitals login-link"
    ),
    "You were invited.": "你已受邀。",
    "This link signs you in, once.": "此链接可登录一次。",
    "A password for {person}: {chars} characters or more, such as four words.": (
        "请为 {person} 设置密码：至少 {chars} 个字符，例如四个单词。"
    ),
    "Password": "密码",
    "Once more": "再次输入",
    "Name": "名称",
    "or with a token": "或使用令牌",
    "Token": "令牌",
    "Sign in with a token": "用令牌登录",
    "A token has no place in an address, where others may read it: paste it here.": (
        "令牌不应出现在地址中，以免被他人看到：请粘贴到此处。"
    ),
    "This shared link is not known here": "此处没有这个分享链接",
    "It may be cut off, or the run was deleted.": "链接可能不完整，或训练已被删除。",
    "This shared link was taken back": "此分享链接已被撤回",
    "This shared link has expired": "此分享链接已过期",
    "Ask whoever sent it for another.": "请向发送者索取新的链接。",
    "the two passwords differ": "两次输入的密码不一致",
    "this token is unknown, was revoked, or has expired": "令牌不存在、已被撤销或已过期",
    "this link is not known here, was used already, or is over": "链接不存在、已被使用或已失效",
    "the proxy that named you did not show that it may": "代理服务器报出了你的名称，但未能证明它有权这样做",
    "the proxy names somebody who is not let in here: an admin adds people by their names": (
        "代理服务器报出的用户不允许登录：请管理员按名称添加"
    ),
    "this link was used already, or is over": "链接已被使用或已失效",
    "this link is for something else": "此链接另有用途",
    "this name and password do not fit": "名称与密码不匹配",
    "too many sign-ins failed: wait a little, and try again": "登录失败次数过多：请稍候再试",
    "the token that this link stood for is over": "此链接对应的令牌已失效",
    "the person whom this link is for is not let in any more": "此链接对应的用户已不再允许登录",
    f"expected {CHARS_MIN} to {CHARS_MAX} characters": f"需要 {CHARS_MIN} 至 {CHARS_MAX} 个字符",
    "expected more than three different characters": "需要三种以上不同的字符",
    "expected a password without the name in it": "密码中不能包含名称",
}
