"""The trainer runs on unharmed, to the last bit of its weights, whatever our side of the world is like."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import rlvitals
from tests.client.disks import remount, tmpfs
from tests.client.integrations import tiny
from tests.client.service import Reply, Service, serving
from tests.end_to_end.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
STEPS = 12
Disk = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def plain_weights(tmp_path_factory: pytest.TempPathFactory, policy: Path) -> str:
    """Of the same training without us."""
    import torch

    torch.set_num_threads(1)
    trainer = tiny.make_trainer(policy, tmp_path_factory.mktemp("plain"), max_steps=STEPS)
    trainer.train()
    return tiny.weights_hash(trainer)


def weights_when_attached(make: MakeTrainer, url: str) -> tuple[str, rlvitals.Reporter]:
    trainer = make(max_steps=STEPS)
    reporter = rlvitals.attach(trainer, url=url, token="t")
    trainer.train()
    assert trainer.state.global_step == STEPS
    reporter.close()
    return tiny.weights_hash(trainer), reporter


def test_no_server(make: MakeTrainer, plain_weights: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    weights, reporter = weights_when_attached(make, url)
    assert weights == plain_weights
    assert len(tiny.steps(reporter)) == STEPS, "all steps wait on disk"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, body=b"oops"),
        Reply(hang=True),
        Reply(body=b"\x00\xff garbage"),
        Reply(body=b'{"epoch": 7, "stored_through": "all"}'),
    ],
    ids=["answers 500", "hangs", "answers garbage", "answers JSON of another kind"],
)
def test_a_server_that(make: MakeTrainer, plain_weights: str, reply: Reply) -> None:
    service = Service()
    service.always = reply
    with serving(service):
        weights, reporter = weights_when_attached(make, service.url)
        assert service.requests > 0
    assert weights == plain_weights
    assert len(tiny.steps(reporter)) == STEPS


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    with tmpfs(folder, "1m"):
        remount(folder, "ro")
        yield


@contextmanager
def full(folder: Path) -> Iterator[None]:
    with tmpfs(folder, "64k"):
        (folder / "ballast").write_bytes(b"x" * 48 * 1024)
        yield


@contextmanager
def no_folder(folder: Path) -> Iterator[None]:
    folder.write_bytes(b"somebody's file")
    yield
    assert folder.read_bytes() == b"somebody's file"


@pytest.mark.parametrize(
    ("disk", "error"), [(read_only, errno.EROFS), (full, errno.ENOSPC), (no_folder, errno.ENOTDIR)]
)
def test_a_spool_that_cannot_be_written(
    make: MakeTrainer,
    plain_weights: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    disk: Disk,
    error: int,
) -> None:
    spool = tmp_path / "small"
    monkeypatch.setenv("RLVITALS_DIR", str(spool))
    with disk(spool), serving(Service()) as service:
        weights, reporter = weights_when_attached(make, service.url)
        service.wait_for(lambda: len(service.steps()) == STEPS)
    assert weights == plain_weights
    assert reporter.counters["dropped"] == 0, "the bounded memory queue took over"
    assert os.strerror(error) in caplog.text, "the disk really failed, and the person is told why"
