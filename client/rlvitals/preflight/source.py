"""Where a subject's tokenizer and model lie: a folder, a file, or a name in the hub's cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.subject import Subject

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
"""Any of them makes a folder one of a tokenizer."""


def tokenizer_of(subject: Subject) -> Any:
    """The tokenizer that was given, else the folder of the model where it holds one, else None."""
    if subject.tokenizer is not None:
        return subject.tokenizer
    folder = named_folder(subject.model)
    return next((found for file in TOKENIZER_FILES if (found := folder_with(folder, file)) is not None), None)


def named_folder(model: Any) -> Any:
    """The folder of a model that is named and lies in the hub's cache; anything else as it is."""
    if not isinstance(model, str) or model.count("/") != 1 or os.path.exists(model):
        return model
    folder, _ = outcome(_snapshot, model)
    return model if folder is None else folder


def folder_with(model: Any, file: str) -> Path | None:
    """The folder that ``model`` names, if it holds the file."""
    if not isinstance(model, str | Path) or not os.path.isfile(Path(model) / file):
        return None
    return Path(model)


def _snapshot(name: str) -> str:
    from huggingface_hub import snapshot_download

    return str(snapshot_download(name, local_files_only=True))
