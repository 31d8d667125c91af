"""A tiny Qwen2 with all 151,936 rows, taught the demo's grammar from random weights in about half a minute.

Two stages of ordinary supervised training: first the grammar over its own few hundred ids, where a step is cheap;
then over the whole vocabulary, until the rows that the grammar never uses are out of reach. Without this a random
policy would emit unassigned ids and broken UTF-8 and would never stop.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import demo_grammar
import demo_tokenizer
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

HIDDEN = 64
IGNORED = -100
Example = tuple[list[int], list[int]]
GRAMMAR_STEPS, VOCABULARY_STEPS = 400, 60
STRAY_WEIGHT, STRAY_LOG_MASS = 0.1, -15.0


def load(cache: Path) -> Path:
    """The folder of the taught policy with its tokenizer, made on first use, kept under a hash of its recipe."""
    folder = cache / f"policy-{_recipe()}"
    if not (folder / "config.json").exists():
        tokenizer = demo_tokenizer.load(cache)
        _save(teach(tokenizer), tokenizer, folder)
    return folder


def teach(tokenizer: PreTrainedTokenizerFast, seed: int = 1) -> Qwen2ForCausalLM:
    torch.manual_seed(seed)
    rows = list(itertools.islice(_examples(tokenizer, seed), 4000))
    ids = sorted({token for example in rows for token in itertools.chain(*example)})
    small = _model(len(ids))
    places = {token: place for place, token in enumerate(ids)}
    _train_grammar(small, [([places[t] for t in prompt], [places[t] for t in answer]) for prompt, answer in rows])
    policy = _enlarge(small, ids)
    _train_vocabulary(policy, rows, ids)
    return policy.eval()


def _model(rows: int) -> Qwen2ForCausalLM:
    config = Qwen2Config(
        vocab_size=rows,
        hidden_size=HIDDEN,
        intermediate_size=3 * HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def _examples(tokenizer: PreTrainedTokenizerFast, seed: int) -> Iterator[Example]:
    """Ids of the prompt, and of the completion with its end of turn."""
    questions = tokenizer(demo_grammar.prompts())["input_ids"]
    dice = random.Random(seed)
    for text in demo_grammar.sentences(seed):
        yield dice.choice(questions), [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]


def _train_grammar(model: Qwen2ForCausalLM, rows: list[Example]) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    for step, batch in enumerate(itertools.islice(_batches(rows, size=32), GRAMMAR_STEPS)):
        _step(model, optimizer, batch, lr=4e-3 * (1 - step / GRAMMAR_STEPS))


def _train_vocabulary(model: Qwen2ForCausalLM, rows: list[Example], used: list[int]) -> None:
    unused = torch.ones(demo_tokenizer.EMBEDDING_ROWS, dtype=torch.bool)
    unused[used] = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.0)
    for step, batch in enumerate(itertools.islice(_batches(rows, size=4), VOCABULARY_STEPS)):
        _step(model, optimizer, batch, lr=1e-2 * (1 - step / VOCABULARY_STEPS), unused=unused)


def _step(
    model: Qwen2ForCausalLM,
    optimizer: torch.optim.Optimizer,
    batch: Tensor,
    lr: float,
    unused: Tensor | None = None,
) -> float:
    for group in optimizer.param_groups:
        group["lr"] = lr
    ids, answers = batch.unbind(1)
    hidden = model.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, :-1]
    taught = answers[:, 1:] != IGNORED
    logits = model.lm_head(hidden[taught])
    loss = functional.cross_entropy(logits, answers[:, 1:][taught])
    if unused is not None:  # log-mass of the unused rows: its pull does not fade as the mass does
        stray = logits.masked_fill(~unused, -torch.inf).logsumexp(-1) - logits.logsumexp(-1)
        loss = loss + STRAY_WEIGHT * (stray - STRAY_LOG_MASS).relu().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def _batches(rows: list[Example], size: int) -> Iterator[Tensor]:
    """(size, 2, T): the ids, and the same with what is not to be learnt as `IGNORED`. Padding is at the right."""
    for start in itertools.count(0, size):
        batch = [rows[i % len(rows)] for i in range(start, start + size)]
        width = max(len(prompt) + len(answer) for prompt, answer in batch)
        yield torch.tensor([_row(prompt, answer, width) for prompt, answer in batch])


def _row(prompt: list[int], answer: list[int], width: int) -> tuple[list[int], list[int]]:
    rest = width - len(prompt) - len(answer)
    return prompt + answer + [0] * rest, [IGNORED] * len(prompt) + answer + [IGNORED] * rest


@torch.no_grad()
def _enlarge(small: Qwen2ForCausalLM, ids: list[int]) -> Qwen2ForCausalLM:
    """The same network with every row of the real vocabulary; rows outside ``ids`` are random."""
    policy = _model(demo_tokenizer.EMBEDDING_ROWS)
    learnt = small.state_dict()
    rows = policy.get_input_embeddings().weight
    rows[torch.tensor(ids)] = learnt.pop("model.embed_tokens.weight")
    learnt.pop("lm_head.weight", None)
    policy.load_state_dict(learnt, strict=False)
    return policy


def _recipe() -> str:
    sources = (Path(__file__), Path(demo_grammar.__file__), Path(demo_tokenizer.__file__))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _save(policy: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    policy.save_pretrained(str(made))
    tokenizer.save_pretrained(str(made))
    try:
        made.rename(folder)
    except OSError:  # another process was first, with the same recipe
        shutil.rmtree(made)


if __name__ == "__main__":
    print(load(Path(__file__).resolve().parent.parent / ".cache" / "demo"))
