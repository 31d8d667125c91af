"""docs/deploy.md does what it says: its commands, as they stand there, give a service with TLS and tokens."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.network import free_port
from tests.chaos.postgres import running

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
PATIENCE_S = 180


def blocks() -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(not (shutil.which("openssl") and shutil.which("curl")), reason="needs openssl and curl")
def test_a_newcomer_gets_two_collectors_with_tls_and_tokens(tmp_path: Path) -> None:
    with running() as postgres:
        ports = {"5432": str(postgres.port)} | {str(port): str(free_port()) for port in range(8642, 8646)}
        script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + "".join(blocks())
        for told, free in ports.items():
            script = script.replace(told, free)
        path = os.pathsep.join([str(Path(sys.executable).parent), str(postgres.binaries), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-c", script],
            env={**os.environ, "HOME": str(tmp_path), "PATH": path, "PGCONNECT_TIMEOUT": "10"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        folder = tmp_path / "rlvitals"
        logs = "".join(log.read_text()[-1000:] for log in folder.glob("*.log"))
        assert done.returncode == 0, done.stdout + done.stderr + logs
    assert done.stdout.count("ready\n") == 4
    assert re.search(rf"https://\S+:{ports['8642']}/\S+", done.stdout), "the invitation leads to the dashboard"
    shown = json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"items"')))
    runs = {run["id"]: run["last_step"] for run in shown["items"]}
    assert runs == {f"first-{ports['8643']}": 1, f"first-{ports['8644']}": 1}
    assert not (folder / "pids").exists()
    private = ("database_password", "tls.key", "trainers.token")
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in private)
