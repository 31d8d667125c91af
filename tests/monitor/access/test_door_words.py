"""The pages of the door in Chinese: every sentence that they can say is known."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.access import door
from rlvitals_monitor.access.password import password_fault
from rlvitals_monitor.api import login, shared_pages
from rlvitals_monitor.api.door_words import CHINESE
from tests.monitor.access.test_door import LOGIN, OURS, PASSWORD, V1, invite
from tests.monitor.conftest import BASE_URL

ERRORS = {"Unauthenticated", "BadRequest", "Conflict", "TooMany"}
CHINESE_FIRST = {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}


@pytest.fixture
def visitor(app: FastAPI, client: TestClient) -> TestClient:
    """Whose browser asks for Chinese."""
    return TestClient(
        app, base_url=BASE_URL, headers=CHINESE_FIRST, raise_server_exceptions=False, follow_redirects=False
    )


def faults_of(module: object) -> set[str]:
    """What the errors that a module raises say, where it is written out."""
    tree = ast.parse(Path(str(getattr(module, "__file__", ""))).read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    told = [c.args[0] for c in calls if isinstance(c.func, ast.Name) and c.func.id in ERRORS and c.args]
    return {one.value for one in told if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def shown(html: str) -> str:
    """What a person reads of a page."""
    return re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<style>.*?</style>", "", html))


def english_in(html: str) -> list[str]:
    known = re.sub(r"RL Vitals|rlvitals login-link|ann", "", shown(html))
    return re.findall(r"[A-Za-z]{3,}", known)


def test_every_fault_of_the_door_is_known_in_chinese() -> None:
    of_passwords = {password_fault(word, "ann") for word in ("short", "aaaaaaaaaaaaaaa", "my name is ann indeed")}
    told = (
        faults_of(door) | faults_of(login) | faults_of(shared_pages) | set(door._REFUSALS.values()) | of_passwords
    )
    assert len(told) > 10
    assert told - CHINESE.keys() == set()


def test_signing_in_speaks_the_language_of_the_browser(visitor: TestClient, client: TestClient) -> None:
    invitation = invite(client)
    entry = invitation["link"].partition("entry=")[2]
    wrong = {"entry": entry, "password": PASSWORD, "again": "another one"}
    pages = [
        visitor.get(LOGIN),
        visitor.get(f"{LOGIN}?token=rlv_x"),
        visitor.get(f"{LOGIN}?entry=nonsense"),
        visitor.get(invitation["link"]),
        visitor.post(LOGIN, data=wrong, headers=OURS),
        visitor.post(LOGIN, data={**wrong, "password": "short", "again": "short"}, headers=OURS),
        visitor.post(LOGIN, data={"name": "ann", "password": "nonsense"}, headers=OURS),
        visitor.post(LOGIN, data={"token": "nonsense"}, headers=OURS),
        visitor.get("/ui/share/nonsense"),
    ]
    for page in pages:
        assert '<html lang="zh">' in page.text
        assert english_in(page.text) == [], shown(page.text)
    assert "请为 <bdi><b>ann</b></bdi> 设置密码" in pages[3].text
    assert "两次输入的密码不一致。" in pages[4].text


def test_what_was_chosen_on_the_dashboard_comes_before_what_the_browser_asks_for(visitor: TestClient) -> None:
    visitor.cookies.set("rlvitals_language", "en")
    assert "Sign in by the link" in visitor.get(LOGIN).text
    visitor.cookies.set("rlvitals_language", "zh-CN")
    assert "请使用服务启动时打印的链接登录" in visitor.get(LOGIN, headers={"accept-language": "en"}).text


def test_a_name_is_escaped_in_both_languages(visitor: TestClient, client: TestClient) -> None:
    made = client.post(f"{V1}/users", json={"name": "<b>{person}</b>", "role": "viewer"}).json()
    for language in ("en", "zh"):
        page = visitor.get(made["link"], headers={"accept-language": language}).text
        assert "<b>&lt;b&gt;{person}&lt;/b&gt;</b>" in page
