"""Tables kept between runs: the same as built ones, and never believed where anything is wrong with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from rlvitals.probes import token_cache
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import byte_alphabet


def tokenizer(*special: str) -> Tokenizer:
    made = Tokenizer(models.BPE(vocab={text: byte for byte, text in byte_alphabet().items()}, merges=[]))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    return made


def assert_same(one: TokenTable, other: TokenTable) -> None:
    for name in ("classes", "map_of", "spelt", "special"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    for name in ("after", "errors", "literals"):
        assert np.array_equal(getattr(one.maps, name), getattr(other.maps, name))
    assert (one.family, one.rows, one.pieces, one.decoders, one.mismatch) == (
        other.family, other.rows, other.pieces, other.decoders, other.mismatch,
    )  # fmt: skip
    assert (one.spelt is one.map_of) == (other.spelt is other.map_of)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table can be built."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the table was built")

    monkeypatch.setattr(TokenTable, "_build", refuse)


@pytest.mark.parametrize("special", [("<|end|>",), ("<|é|>",)], ids=["plain", "with a special token of bytes"])
def test_the_second_reading_takes_the_table_from_the_disk(
    special: tuple[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    built = TokenTable.read(tokenizer(*special), 300, cache=tmp_path)
    request.getfixturevalue("unread")
    assert_same(TokenTable.read(tokenizer(*special), 300, cache=tmp_path), built)


def test_a_real_table_comes_back_as_it_was(encoding: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    built = TokenTable.read(encoding, 151_936, cache=tmp_path)
    request.getfixturevalue("unread")
    assert_same(TokenTable.read(encoding, 151_936, cache=tmp_path), built)


def test_another_tokenizer_or_number_of_rows_has_a_file_of_its_own(tmp_path: Path) -> None:
    for special, rows in ((("<|end|>",), 300), (("<|stop|>",), 300), (("<|end|>",), 301), (("<|end|>",), None)):
        TokenTable.read(tokenizer(*special), rows, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_files_are_for_their_owner_alone_and_nothing_is_left_half_written(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    TokenTable.read(tokenizer(), cache=folder)
    (file,) = folder.iterdir()
    assert file.suffix == ".npz"
    assert file.stat().st_mode & 0o777 == 0o600


def cached(folder: Path) -> Path:
    TokenTable.read(tokenizer("<|end|>"), 300, cache=folder)
    (file,) = folder.iterdir()
    return file


def damage_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def damage_empty(file: Path) -> None:
    file.write_bytes(b"")


def damage_other(file: Path) -> None:
    file.write_bytes(b"not an archive")


def damage_maps(file: Path) -> None:
    rewrite(file, map_of=np.full(301, 60_000, np.uint16))


def damage_states(file: Path) -> None:
    rewrite(file, after=np.full(np.load(file)["after"].size, 77, np.int64))


def damage_rows(file: Path) -> None:
    rewrite(file, classes=np.zeros(7, np.uint8))


def damage_pieces(file: Path) -> None:
    rewrite(file, text=np.zeros(3, np.uint8))


def damage_names(file: Path) -> None:
    rewrite(file, names=np.asarray(["BYTES", "?"]))


def damage_objects(file: Path) -> None:
    rewrite(file, names=np.asarray([{"a": 1}], object))


def damage_other_owner(file: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("ONLY ROOT CAN GIVE A FILE AWAY")
    os.chown(file, 12345, 12345)


def damage_open_to_others(file: Path) -> None:
    file.chmod(0o666)


def damage_link(file: Path) -> None:
    elsewhere = file.with_suffix(".elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def damage_truth(file: Path) -> None:
    """Arrays of the right form that are another tokenizer's: the self-test sees it."""
    with np.load(file) as arrays:
        rewrite(file, map_of=np.zeros_like(arrays["map_of"]))


def rewrite(file: Path, **changed: Any) -> None:
    with np.load(file) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    np.savez(file, **{**kept, **changed})


DAMAGES = [value for name, value in sorted(globals().items()) if name.startswith("damage_")]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_cannot_be_trusted_is_built_again(damage: Any, tmp_path: Path) -> None:
    file = cached(tmp_path)
    damage(file)
    assert damage is damage_truth or token_cache.load(file) is None
    assert_same(
        TokenTable.read(tokenizer("<|end|>"), 300, cache=tmp_path), TokenTable.read(tokenizer("<|end|>"), 300)
    )


def test_a_disk_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    table = TokenTable.read(tokenizer(), cache=tmp_path / "file" / "folder")
    assert not table.mismatch


def test_a_table_that_its_tokenizer_contradicts_is_not_kept(encoding: Any, tmp_path: Path) -> None:
    class Mended:
        special_tokens_set: frozenset[str] = frozenset()
        max_token_value = 255
        _mergeable_ranks = {encoding.decode_single_token_bytes(i): i for i in range(256)}  # noqa: RUF012
        decode_single_token_bytes = staticmethod(encoding.decode_single_token_bytes)

        def decode(self, ids: list[int]) -> str:
            return str(encoding.decode(ids)).replace("\ufffd", "?")

    assert TokenTable.read(Mended(), cache=tmp_path).mismatch
    assert not list(tmp_path.iterdir())


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert token_cache.cache_folder() == tmp_path / "rlvitals" / "tokens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert token_cache.cache_folder() == tmp_path / ".cache" / "rlvitals" / "tokens"
