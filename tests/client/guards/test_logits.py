"""Logits into the limit, NaN never chosen, what was ruled out stays so, and a dead row stays dead."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from rlvitals import guards
from rlvitals.probes.arguments import ProbeArgumentError
from tests.client.guards.conftest import Taken

INF, NAN = math.inf, math.nan


def test_what_is_inside_passes_bit_for_bit(taken: Taken) -> None:
    scores = torch.randn(4, 7)
    assert torch.equal(guards.LogitsClamp()(None, scores), scores)
    clamp = guards.LogitsClamp()
    clamp(None, scores)
    values = taken().values
    assert (values["guard.clamped_logits"], values["guard.clamped_share"], values["guard.nan_logits"]) == (0, 0, 0)


def test_beyond_the_limit_nan_and_infinities(taken: Taken) -> None:
    clamp = guards.LogitsClamp(10.0)
    scores = torch.tensor([[1.0, 11.0, -12.0, -INF], [NAN, INF, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
    got = clamp(None, scores)
    assert got.tolist() == [[1.0, 10.0, -10.0, -INF], [-INF, 10.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0]]
    assert clamp(None, scores).dtype == scores.dtype
    values = taken().values
    assert values["guard.clamped_logits"] == 2 * 3
    assert values["guard.nan_logits"] == 2
    assert values["guard.clamped_share"] == pytest.approx(2 / 3)
    assert "guard.clamped_logits" not in taken().values, "told once"


@pytest.mark.parametrize("row", [[NAN, NAN], [NAN, -INF], [-INF, -INF]])
def test_a_row_without_a_number_is_left_to_fail(row: list[float]) -> None:
    got = guards.LogitsClamp()(None, torch.tensor([row]))
    assert got[0].tolist() == pytest.approx(row, nan_ok=True)


def test_inside_and_outside_inference_mode(taken: Taken) -> None:
    clamp = guards.LogitsClamp(1.0)
    clamp(None, torch.tensor([[5.0]]))
    with torch.inference_mode():
        clamp(None, torch.tensor([[5.0]]))
    clamp(None, torch.tensor([[5.0]]))
    assert taken().values["guard.clamped_logits"] == 3


@pytest.mark.parametrize("limit", [0.0, -1.0, NAN, INF])
def test_a_limit_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(ProbeArgumentError, match="limit"):
        guards.LogitsClamp(limit)


def test_a_model_that_does_not_generate_is_refused() -> None:
    with pytest.raises(TypeError, match="generate"):
        guards.clamp_logits(SimpleNamespace())


def test_a_real_model_samples_through_the_clamp(taken: Taken, caplog: pytest.LogCaptureFixture) -> None:
    transformers = pytest.importorskip("transformers", reason="NO REAL MODEL: transformers is not installed")
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=16,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        pad_token_id=0,
        eos_token_id=None,
        bos_token_id=None,
    )
    model = transformers.Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight.fill_(0.0)
        model.lm_head.weight[3] = 1e4 * torch.sign(model.lm_head.weight[3] + 1)
    clamp = guards.clamp_logits(model, 5.0)
    ids = model.generate(torch.ones(2, 1, dtype=torch.long), do_sample=True, max_new_tokens=4)
    assert ids.shape == (2, 5)
    values = taken().values
    assert values["guard.clamped_logits"] == 8
    assert values["guard.clamped_share"] == 1.0
    assert "log-probs of sampler" in caplog.text
    assert clamp.limit == 5.0
