"""The whole stage, on real tokenizers: what must be named is named, and a healthy set is not troubled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals.preflight import Finding, Report, Verdict
from rlvitals.preflight.subject import Subject
from rlvitals.preflight.tokenization import check_tokenization
from tests.client.preflight.chatml import LLAMA_TEMPLATE, ROWS, TEMPLATE, TURN_END, build
from tests.client.preflight.conftest import shipped_tokens
from tests.client.preflight.test_header import write

CONFIG = {"vocab_size": 151_936, "eos_token_id": 151_645, "bos_token_id": 151_643}
GENERATION = {"eos_token_id": [151_645, 151_643], "pad_token_id": 151_643}
IDS = [f"T{number}" for number in range(1, 22) if number not in (17, 18)]


def check(**given: Any) -> Report:
    return Report.of(check_tokenization(Subject(**given)))


def _one(report: Report, check_id: str, verdict: Verdict) -> Finding:
    (finding,) = [f for f in report.of_check(check_id) if f.verdict is verdict]
    return finding


@pytest.fixture(scope="module")
def healthy(qwen_tokenizer: Any) -> Report:
    data = [{"prompt": "What is 2+2?"}]
    return check(tokenizer=qwen_tokenizer, model=CONFIG, generation_config=GENERATION, data=data)


def test_a_healthy_qwen_set_gets_a_clean_bill(healthy: Report) -> None:
    assert healthy.at_least(Verdict.WARN) == ()
    assert healthy.exit_code == healthy.code(strict=True) == 0
    assert sorted({f.check for f in healthy.findings if f.check.startswith("T")}) == sorted(IDS)


def test_qwen_with_llamas_template_is_named_with_the_key_and_the_fix(qwen_tokenizer: Any) -> None:
    report = check(
        tokenizer=qwen_tokenizer, model=CONFIG, generation_config=GENERATION, chat_template=LLAMA_TEMPLATE
    )
    finding = _one(report, "T9", Verdict.FATAL)
    assert "Llama 3's" in finding.subject
    assert "'<|eot_id|>' is 7 ordinary ids [27, 91, 68, 354, 842, 91, 29]" in finding.evidence
    assert finding.where == "tokenizer_config.json: chat_template"
    assert "the one that ships with this tokenizer" in finding.fix
    assert _one(report, "T6", Verdict.FATAL).subject == "The template's turn end is no token"
    assert report.exit_code == 2


def test_rows_beyond_the_tokenizer_are_named_with_count_ranges_and_reason(healthy: Report) -> None:
    finding = healthy.of_check("T2")[0]
    assert finding.verdict is Verdict.INFO
    assert "271 of 151,936 embedding rows" in finding.evidence
    assert "(151,665 tokens): ids 151665-151935" in finding.evidence
    assert "a drifting policy samples them" in finding.evidence
    unmasked = check(tokenizer=build(), model=ROWS, sampler_masks=False)
    assert _one(unmasked, "T2", Verdict.WARN).fix.startswith("mask them in the sampler")


def test_a_base_models_generation_config_under_a_chat_template_is_fatal(qwen_tokenizer: Any) -> None:
    report = check(tokenizer=qwen_tokenizer, model=CONFIG, generation_config={"eos_token_id": 151_643})
    assert "eos_token_id = [151643, 151645]" in _one(report, "T6", Verdict.FATAL).fix


def test_the_boundary_and_the_assistants_prefix_are_told_as_ids(healthy: Report) -> None:
    assert "'\\nHi': [198, 198, 13048] apart, [271, 13048] together" in _one(healthy, "T13", Verdict.INFO).evidence
    prefix = "151644 '<|im_start|>', 77091 'assistant', 198 '\\n'"
    assert prefix in _one(healthy, "T15", Verdict.OK).evidence
    assert prefix in _one(healthy, "T11", Verdict.OK).evidence


@pytest.mark.parametrize(
    ("name", "rows", "eos", "troubles"),
    [
        ("qwen3", 151_936, [151_645, 151_643], {"T21"}),
        ("llama3_1", 128_256, [128_001, 128_008, 128_009], {"T8", "T21"}),
        ("deepseek_v3", 129_280, 1, {"T8", "T21"}),
    ],
)
def test_shipped_sets_have_the_troubles_that_they_are_known_for(
    name: str, rows: int, eos: Any, troubles: set[str]
) -> None:
    report = check(tokenizer=shipped_tokens(name).source, model=rows, generation_config={"eos_token_id": eos})
    assert {f.check for f in report.at_least(Verdict.WARN)} == troubles
    assert _one(report, "T12", Verdict.OK)
    assert _one(report, "T4", Verdict.OK)


def test_a_model_folder_holds_all_that_is_needed(tmp_path: Path) -> None:
    build().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": ROWS, "eos_token_id": TURN_END}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [TURN_END]}))
    write(tmp_path / "model.safetensors", model__embed_tokens__weight=ROWS)
    report = check(model=str(tmp_path))
    assert report.worst is Verdict.INFO
    assert "the safetensors header" in _one(report, "T1", Verdict.OK).evidence
    assert "generation config" in _one(report, "T6", Verdict.OK).evidence


@pytest.mark.parametrize("name", ["qwen3", "llama3_1", "deepseek_v3", "gemma3"])
def test_under_a_known_trainer_no_shipped_set_rings(name: str) -> None:
    settings = {"num_generations": 8, "max_completion_length": 512, "beta": 0.0, "scale_rewards": "group"}
    eos = {"llama3_1": [128_001, 128_009], "gemma3": [1, 106]}.get(name)
    given = None if eos is None else {"eos_token_id": eos}
    data = [{"prompt": [{"role": "user", "content": "你好，😀 `x = [1]`"}]}]
    report = check(
        tokenizer=shipped_tokens(name).source, generation_config=given, trainer_config=settings, data=data
    )
    assert report.at_least(Verdict.WARN) == ()


def test_a_folder_or_a_name_without_a_tokenizer_is_told(tmp_path: Path) -> None:
    assert _one(check(model=tmp_path), "T1", Verdict.FATAL).subject == "No tokenizer with the model"
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": ROWS}))
    assert _one(check(model=tmp_path), "T1", Verdict.WARN).where == str(tmp_path)
    assert _one(check(model="no/such"), "T1", Verdict.FATAL).subject == "No such model here"
    assert _one(check(model="a/" + "x" * 5000), "T1", Verdict.FATAL)


def test_a_template_is_given_as_text_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "chat_template.jinja"
    file.write_text(TEMPLATE)
    for template in (TEMPLATE, str(file)):
        assert _one(check(tokenizer=build(template=None), chat_template=template), "T9", Verdict.OK)


def test_what_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    assert _one(check(tokenizer=str(tmp_path / "absent")), "T1", Verdict.FATAL).where.endswith("absent")
    (tmp_path / "tokenizer.json").write_text("{}")
    assert _one(check(tokenizer=tmp_path / "tokenizer.json"), "T1", Verdict.FATAL)
    unread = check(tokenizer=build(), model=1.5, generation_config=2, other_tokenizers={"reward": 3})
    assert [f.check for f in unread.at_least(Verdict.FATAL)] == ["T1", "T7", "T20"]
    assert _one(check(tokenizer=build(template="{% for %}")), "T15", Verdict.FATAL)


def test_without_a_tokenizer_nothing_is_judged() -> None:
    assert check().worst is Verdict.SKIPPED
    assert check().code(strict=True) == 0
    assert check(model=5).of_check("T1")[0].verdict is Verdict.SKIPPED


def test_the_parts_of_a_trainer_are_taken_and_what_is_given_wins() -> None:
    class Trainer:
        processing_class = build()
        model = None
        train_dataset = ({"prompt": [{"role": "user", "content": "a <|im_end|> b"}]},)
        args = type("GRPOConfig", (), {})()

    assert "'<|im_end|>' at row 1 prompt[1]" in _one(rlvitals.preflight(Trainer()), "T16", Verdict.WARN).evidence
    assert rlvitals.preflight(Trainer(), data=[{"prompt": "x"}]).of_check("T16")[0].verdict is Verdict.SKIPPED
    assert (
        rlvitals.preflight(Trainer(), tokenizer=build(padding_side="right")).of_check("T21")[0].verdict
        is Verdict.INFO
    )


def test_nothing_given_is_changed() -> None:
    tokenizer = build()
    before = tokenizer.backend_tokenizer.to_str(), tokenizer.padding_side, tokenizer.chat_template
    check(tokenizer=tokenizer, model=ROWS, chat_template=LLAMA_TEMPLATE)
    assert before == (tokenizer.backend_tokenizer.to_str(), tokenizer.padding_side, tokenizer.chat_template)


def test_a_named_model_is_looked_up_in_the_hubs_cache_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "a" * 40
    folder = tmp_path / "models--org--small"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    build().save_pretrained(folder / "snapshots" / commit)
    (folder / "snapshots" / commit / "config.json").write_text(json.dumps({"vocab_size": ROWS}))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert _one(check(model="org/small"), "T1", Verdict.OK)
    assert _one(check(model="org/other", tokenizer=build()), "T1", Verdict.FATAL).where == "org/other"


def test_a_template_that_raises_is_told_once_under_t15() -> None:
    report = check(tokenizer=build(template="{{ bos_token + 'x' }}" + LLAMA_TEMPLATE))
    assert [f.evidence for f in report.of_check("T15")] == ["UndefinedError: 'bos_token' is undefined"]
    assert "Llama 3's" in _one(report, "T9", Verdict.FATAL).subject
