"""`rlvitals serve` as a person starts it: a real process, a real port, the real service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from rlvitals.contract.codec import dumps
from rlvitals_dashboard import serve

pytestmark = pytest.mark.slow
PATIENCE_S = 75.0
_MAIN = "import sys; from rlvitals_dashboard.serve import main; sys.exit(main())"


class Service:
    def __init__(self, home: Path, *more: str) -> None:
        environment = os.environ | {"RLVITALS_HOME": str(home), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, "--port", "0", *more],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if "stop:" in line:
                break
        self.link = next(iter(re.findall(r"http://\S+entry=\S+", "".join(self.said))))
        self.token = json.loads((home / "token.json").read_text())["token"]
        self.url = self.link.split("/ui/")[0]

    def end(self, how: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(how)
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, rest


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path / "home")
    yield running
    if running.process.poll() is None:
        running.end(signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_with_zero(service: Service, how: signal.Signals) -> None:
    code, rest = service.end(how)
    assert (code, rest) == (0, "RL Vitals stopped.\n")


def test_the_printed_link_signs_in_and_the_pages_answer(service: Service) -> None:
    with httpx2.Client(base_url=service.url, follow_redirects=True) as browser:
        assert browser.get("/ui/").url.path == "/ui/login"
        assert browser.get(service.link).url.path == "/ui/"
        assert "RL Vitals" in browser.get("/").text
        assert browser.get("/ui/run/any").status_code == 200
        assert browser.get("/api/v1/runs").json() == {"items": [], "next": ""}
    again = httpx2.get(service.link)
    assert (again.status_code, "used already" in again.text) == (403, True)


def test_the_token_file_is_its_owners_alone(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "home" / "token.json"
    assert str(file) in "".join(service.said)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_of_its_own_is_named_for_the_other_commands(service: Service, tmp_path: Path) -> None:
    assert "RLVITALS_DATA" not in "".join(service.said)
    own = Service(tmp_path / "home", "--data", str(tmp_path / "my runs"))
    own.end(signal.SIGKILL)
    assert f"RLVITALS_DATA='{tmp_path / 'my runs'}'" in "".join(own.said)


@pytest.mark.parametrize("path", ["/api/nothing", "/api/v1/nothing", "/nothing", "/uix"])
def test_unknown_paths_are_404_in_json_and_never_the_dashboards_page(service: Service, path: str) -> None:
    answer = httpx2.get(service.url + path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("application/problem+json")


def test_a_foreign_host_is_refused_on_the_pages_too(service: Service) -> None:
    answer = httpx2.get(f"{service.url}/ui/", headers={"host": "evil.example"}, follow_redirects=False)
    assert "Runs" not in answer.text
    assert answer.status_code in (303, 403)
    login = httpx2.get(f"{service.url}/ui/login", headers={"host": "evil.example"})
    assert login.status_code == 403


def test_a_taken_port_is_refused_with_a_way_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = serve.main(["--port", str(port), "--data", str(tmp_path)])
    said = capsys.readouterr().out
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said
    assert "--port 0" in said


def test_what_the_service_begins_with_is_no_more_looked_through_once_it_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(serve.gc, "freeze", lambda: said.append("set aside"))
    config = uvicorn.Config(FastAPI(), lifespan="off", log_level="error")
    server = serve._Server(config, lambda: said.append("ready"), drain=lambda: None, drain_s=0.0)

    async def start_and_stop(listener: socket.socket) -> None:
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup([listener])
        await server.shutdown([listener])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(start_and_stop(listener))
    assert said == ["set aside", "ready"]


@pytest.mark.browser
def test_a_real_report_is_seen_in_the_browser_with_all_four_kinds_apart(service: Service, open_page: Any) -> None:
    from playwright.sync_api import expect

    values = [
        {"gradient.norm": 1.0, "policy.loss": 0.5, "kl.k3": 0.1},
        {"gradient.norm": "NaN", "policy.loss": 0.4, "kl.k3": 0.1},
        {"gradient.norm": "Infinity", "policy.loss": "-Infinity", "kl.k3": 0.1},
    ]
    steps = [
        {"seq": i + 1, "step": i, "time_s": 1.7e9 + i, "values": v, "missing": {"ratio.ess": "no old log-probs"}}
        for i, v in enumerate(values)
    ]
    answer = httpx2.post(
        f"{service.url}/api/v1/reports",
        params={"run": "wire", "attempt": "a"},
        content=b"\n".join(dumps(step) for step in steps),
        headers={"authorization": f"Bearer {service.token}", "content-type": "application/x-ndjson"},
        timeout=PATIENCE_S,
    )
    assert answer.status_code == 200, answer.text
    page = open_page(service.url, "/ui/run/wire", login=service.link.removeprefix(service.url))
    gradient = page.locator("figure.chart").filter(has=page.locator(".name", has_text="gradient.norm"))
    expect(gradient.locator(".kind.nan")).to_have_text("✕ NaN × 1, step 1")
    expect(gradient.locator(".kind.pos-inf")).to_have_text("▲ +Inf × 1, step 2")
    expect(page.locator(".kind.neg-inf")).to_have_text("▼ −Inf × 1, step 2")
    expect(page.locator(".missing-list li").filter(has_text="ratio.ess")).to_contain_text("no old log-probs")


def test_an_address_that_no_machine_has_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve.main(["--host", "300.1.1.1", "--port", "0"]) == 1
    said = capsys.readouterr().out
    assert "cannot listen on 300.1.1.1:0" in said
    assert "Unknown error" not in said
