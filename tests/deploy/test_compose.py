"""The compose file is one by the compose schema, and says what docs/deploy.md promises of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
OURS = ("collector-1", "collector-2", "worker", "dashboard")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


def test_it_is_valid_by_the_compose_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_schema_would_have_found_a_fault(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yml"
    wrong.write_text(COMPOSE.read_text().replace("restart: unless-stopped", "restarts: 7", 1))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(wrong)]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 1


def test_compose_itself_reads_it_with_no_engine_at_hand() -> None:
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("THE COMPOSE FILE IS NOT RESOLVED: there is no docker compose here")
    asked = ["docker", "compose", "--file", str(COMPOSE), "config", "--quiet"]
    told = {**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:9", "RLVITALS_PUBLIC_URL": "https://x.example.org"}
    done = subprocess.run(asked, env=told, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    del told["RLVITALS_PUBLIC_URL"]
    done = subprocess.run(asked, env=told, capture_output=True, text=True, timeout=60, check=False)
    assert "set it to the address" in done.stderr


def test_what_is_waited_for_says_when_it_is_well(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}, name
            assert "healthcheck" in compose["services"][other] or other in OURS, f"{name} waits for {other}"


def test_what_a_service_names_is_defined(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert set(service.get("networks", ())) <= set(compose["networks"]), name
        assert set(service.get("depends_on", ())) <= set(compose["services"]), name
    variables = set(re.findall(r"\$\{(\w+)", COMPOSE.read_text()))
    assert variables == {"RLVITALS_PUBLIC_URL"}


def test_every_service_has_limits_and_comes_back(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        assert service["restart"] == "unless-stopped", name


def test_two_collectors_a_worker_and_a_dashboard_each_in_its_role(compose: dict[str, Any]) -> None:
    roles = [compose["services"][name]["command"][-1] for name in OURS]
    assert roles == ["collector", "collector", "worker", "dashboard"]
    assert "HEALTHCHECK" in (ROOT / "Dockerfile").read_text()


def test_what_secrets_are_used_are_defined_and_none_stands_in_the_file(compose: dict[str, Any]) -> None:
    used = {secret for service in compose["services"].values() for secret in service.get("secrets", ())}
    assert used == set(compose["secrets"])
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert "password" not in name.lower() or str(value).startswith("/run/secrets/")


def test_only_the_balancer_is_reached_from_elsewhere(compose: dict[str, Any]) -> None:
    open_ones = [name for name, service in compose["services"].items() if "ports" in service]
    assert open_ones == ["balancer"]
    assert compose["networks"]["inside"]["internal"] is True
    outside = {name for name, service in compose["services"].items() if "outside" in service["networks"]}
    assert outside == {"balancer", "worker"}


def test_volumes_are_defined_and_no_two_processes_share_one(compose: dict[str, Any]) -> None:
    mounted = [
        volume.split(":")[0] for name in (*OURS, "postgres") for volume in compose["services"][name]["volumes"]
    ]
    assert sorted(mounted) == sorted(compose["volumes"])


def test_the_balancer_knows_the_collectors_by_their_names(compose: dict[str, Any]) -> None:
    config = (ROOT / "deploy" / "nginx.conf").read_text()
    for name in OURS:
        assert (f"server {name}:8642" in config) == (name != "worker")
    assert "location = /api/v1/reports" in config
    for secret in ("tls_certificate", "tls_key"):
        assert f"/run/secrets/{secret};" in config
