"""The whole demo, as `make demo` runs it, only shorter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.examples.conftest import EXAMPLES

pytest.importorskip("trl", reason="the TRL extra is not installed: THE DEMO WAS NOT RUN")
SECONDS, DEADLINE_S = 75, 560


@pytest.mark.slow
def test_the_demo_keeps_its_promises() -> None:
    told = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        env={**os.environ, "DEMO_SECONDS": str(SECONDS), "DEMO_OPEN": "0", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    if "another demo is running" in told.stdout:
        pytest.skip("ANOTHER DEMO IS RUNNING FROM THIS FOLDER: this one was left out")
    assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-2000:]
    assert "set_kl_coef │ applied" in told.stdout
