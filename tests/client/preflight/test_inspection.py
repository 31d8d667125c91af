"""One call, two names for it, nothing third-party before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rlvitals
from rlvitals.preflight import Report, check


def test_the_module_is_the_call() -> None:
    assert rlvitals.preflight.check is check  # type: ignore[attr-defined]
    assert isinstance(rlvitals.preflight(), Report)


def test_an_unknown_part_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="tokeniser"):
        check(tokeniser=None)


def test_the_name_loads_no_third_party_module() -> None:
    probe = (
        "import sys, rlvitals; rlvitals.preflight; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'numpy', 'torch', 'transformers', 'tokenizers'}))"
    )
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
