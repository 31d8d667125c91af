"""The callback of docs/integrations/loop.md, word for word, in a real Lightning trainer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax
from torch.utils.data import DataLoader, TensorDataset

import rlvitals
from tests.client.integrations import tiny

lightning = pytest.importorskip("pytorch_lightning", reason="NO TEST WITH LIGHTNING: it is not installed")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "integrations" / "loop.md"


class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
    vitals: Any = None

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Embedding(8, 8)

    def training_step(self, batch: list[Tensor], number: int) -> Tensor:
        ids = batch[0]
        logp = log_softmax(self.net(ids), -1).gather(2, ids[:, :, None])[:, :, 0]
        advantages = torch.linspace(-1, 1, len(ids))
        loss = -(advantages[:, None] * logp).mean()
        if self.vitals is not None:
            self.vitals.rollout(ids, rewards=advantages)
            self.vitals.loss(loss / 2, logp=logp, ref=logp.detach() - 0.1, advantages=advantages, ids=ids)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trained(callbacks: list[Any]) -> Module:
    module = Module()
    rows = TensorDataset(torch.arange(64).reshape(16, 4) % 8)
    trainer = lightning.Trainer(
        max_steps=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        accumulate_grad_batches=2,
        gradient_clip_val=0.1,
    )
    trainer.fit(module, DataLoader(rows, batch_size=2))
    return module


@pytest.mark.filterwarnings("ignore")
def test_the_documented_callback_watches_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    block = re.search(r"## Lightning.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"lightning": lightning, "rlvitals": rlvitals}
    exec(block.group(1).replace(", …)", ", kl_coef=0.1, loss_type='grpo', accumulation=2)"), names)
    plain, watched = trained([]), trained([names["VitalsCallback"]()])
    assert torch.equal(plain.net.weight, watched.net.weight)
    steps = tiny.steps(watched.vitals.reporter)
    assert [step.step for step in steps] == [1, 2, 3]
    assert {"kl.k3", "gradient.norm", "gradient.update_ratio", "reward.mean"} <= steps[-1].values.keys()
