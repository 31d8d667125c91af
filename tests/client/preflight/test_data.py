"""D1 to D18: each check speaks on its fault, with the line, and is quiet on the near miss."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tracemalloc
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rlvitals.preflight import data, data_lines, data_rows
from rlvitals.preflight.data import files_of, read_file, read_rows
from rlvitals.preflight.data_faults import SHOWN, Fault
from rlvitals.preflight.data_findings import CHECKS, judge_data
from rlvitals.preflight.data_rows import DataOptions
from rlvitals.preflight.data_sample import read_passages
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.inputs import Inputs, check_inputs

S, E = "<|im_start|>", "<|im_end|>"


def chatml(user: str, answer: str = "Four." + E) -> dict[str, object]:
    return {"prompt": f"{S}user\n{user}{E}\n{S}assistant\n", "completion": answer}


def encoded(row: object) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")


HEALTHY = [encoded(chatml(f"What is {n} + 2?")) for n in range(6)]


def findings(path: Path, options: DataOptions | None = None) -> list[Finding]:
    return list(judge_data(read_file(path, options).facts))


def written(folder: Path, lines: Iterable[bytes], name: str = "rows.jsonl", end: bytes = b"\n") -> Path:
    path = folder / name
    path.write_bytes(b"".join(line + end for line in lines))
    return path


def bad(found: Iterable[Finding]) -> dict[str, Finding]:
    return {f.check: f for f in found if f.verdict not in (Verdict.OK, Verdict.SKIPPED)}


def with_line(line: bytes) -> list[bytes]:
    """Healthy rows with this one as line 4."""
    return [*HEALTHY[:3], line, *HEALTHY[3:]]


def test_a_healthy_file_gets_a_clean_bill_from_every_check(tmp_path: Path) -> None:
    found = findings(written(tmp_path, HEALTHY))
    assert [f.verdict for f in found] == [Verdict.OK] * len(CHECKS)
    assert [f.check for f in found] == [f"D{n}" for n in range(1, 19)]


def test_bom_broken_utf8_and_a_missing_turn_start_are_each_named_with_line_and_fix(tmp_path: Path) -> None:
    lines = list(HEALTHY)
    lines[0] = b"\xef\xbb\xbf" + lines[0]
    lines[2] = lines[2].replace(b"What", b"Wh\xe4\x80t")
    lines[4] = encoded({"prompt": f"user\nWhat?{E}\n{S}assistant\n", "completion": "Four." + E})
    path = written(tmp_path, lines)
    found = bad(findings(path))
    assert set(found) == {"D2", "D3", "D16"}
    assert found["D2"].verdict is Verdict.WARN
    assert found["D2"].where == f"{path}:1"
    at = path.read_bytes().index(b"\xe4\x80t")
    assert found["D3"].verdict is Verdict.FATAL
    assert f"line 3: byte {at} of the file: e4 80" in found["D3"].evidence
    assert found["D16"].verdict is Verdict.FATAL
    assert "line 5" in found["D16"].evidence
    assert S in found["D16"].fix
    assert all(f.fix for f in found.values())


HIDDEN = {
    "bom_inside": ("D2", "a\ufeffb", "a\u2060b"),
    "replacement": ("D4", "caf\ufffd", "café"),
    "backspace": ("D5", "\x08egin{x}", "\\begin{x}\t\n"),
    "null": ("D5", "a\x00b", "a b"),
    "c1": ("D5", "a\x85b", "a\xa0b"),
    "bidi": ("D6", "a\u202eb", "a\u200fשלום"),
    "noncharacter": ("D7", "a\ufdd0b", "a\ufdccb"),
    "noncharacter_above": ("D7", "a\U0001ffffb", "a\U0001f600b"),
    "private_use": ("D7", "a\uf0b7b", "a•b"),
    "private_use_above": ("D7", "a\U000f0001b", "a\U000e0101b"),
    "surrogate": ("D8", "a\ud83db", "a\U0001f600b"),
    "carriage_return": ("D9", "a\r\nb", "a\nb"),
    "mojibake_latin": ("D10", "cafÃ©", "NÃO, Âge"),
    "mojibake_quote": ("D10", "itâ€™s", "it’s â €"),
    "mojibake_chinese": ("D10", "锟斤拷锟斤拷", "一斤锟的烫"),
}


ESCAPE_ONLY = {"backspace", "null", "surrogate", "carriage_return"}
"""JSON has these as escapes only."""
FORMS = [(case, escaped) for case in HIDDEN for escaped in (False, True) if escaped or case not in ESCAPE_ONLY]


@pytest.mark.parametrize(("case", "escaped"), FORMS, ids=[f"{c}-{'escaped' if e else 'raw'}" for c, e in FORMS])
def test_odd_characters_are_named_raw_or_escaped_and_their_neighbours_are_not(
    tmp_path: Path, case: str, escaped: bool
) -> None:
    check, odd, near = HIDDEN[case]
    for text, expected in ((odd, {check}), (near, set[str]())):
        line = json.dumps(chatml(text), ensure_ascii=escaped).encode()
        assert set(bad(findings(written(tmp_path, with_line(line))))) == expected
        rows: list[object] = [json.loads(row) for row in HEALTHY]
        assert set(bad(judge_data(read_rows([*rows, chatml(text)]).facts))) == expected


def test_latex_that_lost_its_backslash_is_told_as_such(tmp_path: Path) -> None:
    line = HEALTHY[0].replace(b"What", b"\\frac{1}{2}")
    assert "\\frac{1}" in bad(findings(written(tmp_path, with_line(line))))["D5"].evidence


SHAPES = {
    "broken": (b'{"prompt": "a', "D11", Verdict.FATAL),
    "deep": (b"[" * 100_000, "D11", Verdict.FATAL),
    "digits": (b'{"prompt": ' + b"9" * 5000 + b"}", "D11", Verdict.FATAL),
    "list": (b"[1, 2]", "D12", Verdict.FATAL),
    "string": (b'"a"', "D12", Verdict.FATAL),
    "other_type": (encoded({"prompt": f"{S}user\nA{E}\n{S}assistant\n", "completion": 4}), "D12", Verdict.FATAL),
    "missing": (encoded({"prompt": f"{S}user\nA{E}\n{S}assistant\n"}), "D12", Verdict.WARN),
    "null": (encoded({**chatml("A"), "completion": None}), "D12", Verdict.WARN),
    "empty_prompt": (encoded({**chatml("A"), "prompt": " \n"}), "D13", Verdict.WARN),
    "empty_answer": (encoded(chatml("A", "")), "D13", Verdict.WARN),
    "double": (HEALTHY[1], "D15", Verdict.WARN),
    "no_template": (encoded({"prompt": "A", "completion": "B"}), "D16", Verdict.FATAL),
    "no_end": (encoded({**chatml("A"), "prompt": f"{S}user\nA\n{S}assistant\n"}), "D16", Verdict.FATAL),
    "near_miss": (encoded(chatml("A", f"B <|im_end |>{E}")), "D16", Verdict.WARN),
    "no_bars": (encoded(chatml("A", f"B <im_end>{E}")), "D16", Verdict.WARN),
    "other_case": (encoded(chatml("A", f"B <|Im_end|>{E}")), "D16", Verdict.WARN),
    "roles": (encoded({**chatml("A"), "prompt": f"{S}usr\nA{E}\n{S}assistant\n"}), "D17", Verdict.WARN),
    "twice": (encoded(chatml(f"A{E}\n{S}user\nB")), "D17", Verdict.WARN),
    "late_system": (encoded(chatml(f"A{E}\n{S}system\nB{E}\n{S}user\nC")), "D17", Verdict.WARN),
    "no_generation_prompt": (
        encoded({"prompt": f"{S}user\nA{E}\n", "completion": ""}),
        "D17",
        Verdict.WARN,
    ),
    "no_generation_prompt_before_an_answer": (
        encoded({"prompt": f"{S}user\nA{E}\n", "completion": f"B{E}"}),
        "D17",
        Verdict.WARN,
    ),
    "no_eos": (encoded(chatml("A", "Four.")), "D18", Verdict.WARN),
}


@pytest.mark.parametrize("case", SHAPES)
def test_each_damaged_row_is_named_by_its_line(tmp_path: Path, case: str) -> None:
    line, check, verdict = SHAPES[case]
    found = bad(findings(written(tmp_path, with_line(line))))
    assert found[check].verdict is verdict
    assert "line 4" in found[check].evidence
    assert found[check].where.endswith(":4")
    assert found[check].fix


NEAR = {
    "xml": chatml("Write <user> and </user> tags, then <b>stop</b>"),
    "html_pipe": chatml("a <| b |> c || d"),
    "system_first": {**chatml("A"), "prompt": f"{S}system\nBe brief.{E}\n{S}user\nA{E}\n{S}assistant\n"},
    "three_turns": chatml(f"A{E}\n{S}assistant\nB{E}\n{S}user\nC"),
    "thinking": {**chatml("A"), "prompt": f"{S}user\nA{E}\n{S}assistant\n<think>\n"},
    "number_or_float": {**chatml("A"), "weight": 1.5},
    "answer_with_its_start": {"prompt": f"{S}user\nA{E}\n", "completion": f"{S}assistant\nB{E}"},
}


@pytest.mark.parametrize("case", NEAR)
def test_rows_that_only_look_damaged_are_left_alone(tmp_path: Path, case: str) -> None:
    rows = [{**json.loads(row), **({"weight": 1} if "weight" in NEAR[case] else {})} for row in HEALTHY]
    path = written(tmp_path, [*map(encoded, rows), encoded(NEAR[case])])
    assert bad(findings(path)) == {}


TEMPLATES = {
    "llama3": (
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    "gemma": ("<bos><start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>"),
    "mistral": ("<s>[INST] {} [/INST]", "</s>"),
    "deepseek": ("<｜begin▁of▁sentence｜><｜User｜>{}<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "mistral_system": ("<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]{}[/INST]", "</s>"),
    "deepseek_system": ("<｜begin▁of▁sentence｜>Be brief.<｜User｜>{}<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "glm": ("[gMASK]<sop><|user|>\n{}<|assistant|>\n", ""),
    "phi": ("<|user|>\n{}<|end|>\n<|assistant|>\n", "<|end|>"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_other_templates_are_known_and_their_lost_starts_found(tmp_path: Path, name: str) -> None:
    prompt, end = TEMPLATES[name]
    rows = [{"prompt": prompt.format(n), "completion": f"{n}{end}"} for n in range(6)]
    assert bad(findings(written(tmp_path, map(encoded, rows)))) == {}
    rows[3]["prompt"] = "user 3 asks" + rows[3]["prompt"][prompt.index("{") :]
    found = bad(findings(written(tmp_path, map(encoded, rows))))
    assert "line 4" in found["D16"].evidence


def test_a_large_array_in_one_line_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([chatml(f"{n} " + "x" * 2000) for n in range(3000)]))
    tracemalloc.start()
    try:
        assert read_file(path).facts.rows == 3000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 1.2


def test_rows_of_another_template_than_the_tokenizers_are_fatal(tmp_path: Path) -> None:
    path = written(tmp_path, HEALTHY)
    assert bad(findings(path, DataOptions(template=S))) == {}
    found = bad(findings(path, DataOptions(template="<|start_header_id|>")))
    assert "ChatML" in found["D16"].evidence


def dialogue(*turns: tuple[str, str]) -> dict[str, object]:
    return {"prompt": [{"role": role, "content": text} for role, text in turns]}


def test_dialogues_are_read_by_their_roles() -> None:
    fine = [dialogue(("system", "Be brief."), ("user", f"{n}?")) for n in range(4)]
    assert bad(judge_data(read_rows(fine).facts)) == {}
    for wrong, check in (
        (dialogue(("user", "a"), ("assistant", "b")), "D17"),
        (dialogue(("usr", "a")), "D17"),
        (dialogue(("assistant", "a"), ("user", "b")), "D17"),
        (dialogue(("user", "a"), ("user", "b")), "D17"),
        (dialogue(("user", f"{S}user\na{E}")), "D16"),
        (dialogue(("system", "Be brief."), ("user", "")), "D13"),
    ):
        assert list(bad(judge_data(read_rows([*fine, wrong]).facts))) == [check]


def test_a_turn_that_calls_a_tool_shows_an_image_or_silences_the_system_prompt_is_not_empty() -> None:
    user = {"role": "user", "content": [{"type": "image", "image": "a.png"}]}
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    tool = {"role": "tool", "content": "3"}
    rows = [
        {
            "messages": [
                {"role": "system", "content": ""},
                user,
                call,
                tool,
                {"role": "assistant", "content": f"{n}"},
            ]
        }
        for n in range(3)
    ]
    assert bad(judge_data(read_rows(rows).facts)) == {}
    silent = {
        "messages": [user, {"role": "assistant", "content": None}, tool, {"role": "assistant", "content": "x"}]
    }
    assert list(bad(judge_data(read_rows([*rows, silent]).facts))) == ["D13"]


def test_a_transcript_ends_with_its_answer() -> None:
    turns = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "Four."}]
    told = [{"from": "human", "value": "3 + 3?"}, {"from": "gpt", "value": "Six."}]
    reading = read_rows([{"messages": turns}])
    assert reading.answers.total == 1
    assert bad(judge_data(reading.facts)) == {}
    assert read_rows([{"conversations": told}]).answers.total == 1


def test_of_a_dataset_in_a_job_the_first_rows_are_looked_at_and_of_a_stream_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data, "ROWS_MAX", 5)
    assert read_rows([{"prompt": str(n)} for n in range(9)]).facts.rows == 5
    stream = iter([{"prompt": "a"}])
    assert all(f.verdict is Verdict.SKIPPED for f in check_inputs(Inputs(data=stream, versions={})))
    assert next(stream) == {"prompt": "a"}


def test_crlf_is_only_information(tmp_path: Path) -> None:
    found = bad(findings(written(tmp_path, HEALTHY, end=b"\r\n")))
    assert {check: f.verdict for check, f in found.items()} == {"D9": Verdict.INFO}


def test_the_first_places_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    lines = [encoded(chatml(f"{n} \ufffd")) for n in range(40)]
    reading = read_file(written(tmp_path, lines))
    assert reading.facts.count(Fault.REPLACEMENT) == 40
    assert [s.line for s in reading.facts.spots[Fault.REPLACEMENT].first] == list(range(1, SHOWN + 1))
    assert "35 more" in bad(judge_data(reading.facts))["D4"].evidence


# -- forms of files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["array", "indented", "wrapped", "lines", "gzip"])
def test_one_data_set_in_every_form_of_json_tells_the_same(tmp_path: Path, form: str) -> None:
    rows = [{"prompt": f'A "quoted" \\ [x], {{y}} é {n}', "completion": "B\n" * n} for n in range(1, 400)]
    rows[200]["prompt"] += "\ufffd"
    indent = 1 if form == "indented" else None
    if form in ("lines", "gzip"):
        text = "\n".join(json.dumps(row) for row in rows)
    else:
        text = json.dumps(rows, indent=indent)
    if form == "wrapped":
        text = json.dumps({"version": "1", "data": rows}, ensure_ascii=False)
    path = tmp_path / ("rows.jsonl.gz" if form == "gzip" else "rows.json")
    path.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.encode())
    reading = read_file(path)
    assert reading.facts.rows == 399
    assert set(reading.facts.spots) == {Fault.REPLACEMENT}
    assert (reading.facts.prompt_key, reading.facts.answer_key) == ("prompt", "completion")


def test_elements_of_an_array_are_found_across_chunks_of_any_size() -> None:
    from rlvitals.preflight.data_json import ElementSplitter

    rows: list[object] = [{"a": 'x "\\" ] , é'}, [1, [2]], "text, ]", 7, {}]
    text = json.dumps({"meta": {"n": [1]}, "rows": rows}, indent=1, ensure_ascii=False).encode()
    for size in (1, 2, 3, 7, 1000):
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        splitter = ElementSplitter()
        lines = list(splitter.feed(chunks))
        assert [json.loads(line.raw) for line in lines] == rows
        assert all(text[line.offset : line.offset + len(line.raw)] == line.raw for line in lines)
        assert [line.number for line in lines] == [1 + text[: line.offset].count(b"\n") for line in lines]
        assert splitter.broken == ""


def test_an_array_that_is_cut_off_tells_its_rows_and_where_it_broke(tmp_path: Path) -> None:
    text = json.dumps([{"prompt": f"{n}"} for n in range(10)])
    found = findings(written(tmp_path, [text[:-20].encode()], "rows.json"))
    assert bad(found)["D11"].evidence.startswith("the file ends inside")
    assert "8 rows" in found[0].evidence


def test_json_without_any_list_of_rows_says_what_was_expected(tmp_path: Path) -> None:
    found = findings(written(tmp_path, [b"{", b'"a": 1', b"}"], "rows.json"))
    assert found[0].verdict is Verdict.FATAL
    assert "no list of rows" in found[0].evidence
    assert {f.verdict for f in found[1:]} == {Verdict.SKIPPED}


def test_csv_is_read_by_its_header_with_true_line_numbers(tmp_path: Path) -> None:
    lines = [b"prompt,answer", b'"two\n\nlines",4', b"caf\xff,5", b"a,b,c", "x\ufffd,6".encode(), b"fine,7"]
    facts = read_file(written(tmp_path, lines, "rows.csv")).facts
    assert facts.rows == 4
    assert {fault: spots.first[0].line for fault, spots in facts.spots.items()} == {
        Fault.INVALID_UTF8: 5,
        Fault.BROKEN_ROW: 6,
        Fault.REPLACEMENT: 7,
    }


def test_csv_with_a_huge_field_and_a_quote_that_never_closes_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "LINE_MAX", 2000)
    lines = [b"prompt,answer", b"a,1", b'"' + b"x" * 50, *[b"y" * 100] * 40, b"b,2"]
    facts = read_file(written(tmp_path, lines, "rows.csv")).facts
    assert facts.count(Fault.BROKEN_ROW) >= 1
    import csv

    assert csv.field_size_limit() == 131072


def test_parquet_is_read_by_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="PARQUET IS NOT CHECKED: pyarrow is absent")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [json.loads(row) for row in HEALTHY]
    rows[3]["prompt"] += "\ufffd"
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = bad(findings(tmp_path / "rows.parquet"))
    assert "row 4" in found["D4"].evidence
    raw = pa.array([b"fine", b"br\xffken", b"too"], pa.binary())
    strings = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"prompt": strings}), tmp_path / "broken.parquet")
    facts = read_file(tmp_path / "broken.parquet").facts
    assert facts.spots[Fault.INVALID_UTF8].first[0].line == 2
    assert facts.rows == 2


def test_parquet_without_pyarrow_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = findings(tmp_path / "rows.parquet")
    assert found[0].verdict is Verdict.FATAL
    assert "rlvitals[check]" in found[0].evidence


def test_a_parquet_file_that_is_none_is_told_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="PARQUET IS NOT CHECKED: pyarrow is absent")
    (tmp_path / "rows.parquet").write_bytes(b"no parquet at all")
    found = findings(tmp_path / "rows.parquet")
    assert "Parquet:" in found[0].evidence


def test_a_file_without_rows_is_no_clean_bill(tmp_path: Path) -> None:
    for lines in ([], [b""], [b"prompt,answer"]):
        found = findings(written(tmp_path, lines, "rows.csv"))
        assert found[0].verdict is Verdict.FATAL
        assert "not one row" in found[0].evidence
    assert read_rows([]).facts.count(Fault.NO_ROWS) == 1


@pytest.mark.parametrize("reader", [read_file, read_passages])
def test_a_pipe_and_a_device_are_refused_and_never_waited_for(tmp_path: Path, reader: Any) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    os.mkfifo(tmp_path / "a.parquet")
    for path in (tmp_path / "a.jsonl", tmp_path / "a.parquet", Path("/dev/zero")):
        reader(path)
    told = [
        bad(judge_data(read_file(path).facts))["D1"].evidence
        for path in (tmp_path / "a.parquet", Path("/dev/zero"))
    ]
    assert [word in one for word, one in zip(("a pipe", "a device"), told, strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (gzip.compress(b'{"prompt": "a"}\n', mtime=0), "it is gzip: let its name end in .gz"),
        (b"PK\x03\x04\x14", "it is a ZIP archive"),
        (b"PAR1\x15\x04", "it is Parquet"),
        (b"\x28\xb5\x2f\xfd\x04", "it is Zstandard"),
        ('{"prompt": "a longer text", "answer": "b"}\n'.encode("utf-16-le"), "UTF-16 without a byte order mark"),
        ('{"prompt": "a longer text", "answer": "b"}\n'.encode("utf-16-be"), "UTF-16 without a byte order mark"),
    ],
)
def test_what_is_no_text_is_named_once_and_not_by_its_rows(tmp_path: Path, raw: bytes, told: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes(raw)
    found = bad(judge_data(read_file(path).facts))
    assert list(found) == ["D1"]
    assert told in found["D1"].evidence


def test_utf16_and_missing_files_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "wide.jsonl").write_bytes('{"prompt": "a"}\n'.encode("utf-16"))
    assert "it is UTF-16" in findings(tmp_path / "wide.jsonl")[0].evidence
    assert "No such file" in findings(tmp_path / "absent.jsonl")[0].evidence


def test_a_folder_gives_its_known_files_by_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.csv.gz", "notes.md"):
        (tmp_path / name).write_bytes(b"")
    assert [p.name for p in files_of(tmp_path)] == ["a.csv.gz", "b.jsonl"]
    (tmp_path / "empty").mkdir()
    (finding, *_) = check_inputs(Inputs(data=[str(tmp_path / "empty")], versions={}))
    assert finding.verdict is Verdict.FATAL
    assert "a folder without data files" in finding.evidence


# -- hostile files -------------------------------------------------------------------------------------------


def test_a_line_beyond_the_bound_is_told_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_lines, "LINE_MAX", 1000)
    facts = read_file(written(tmp_path, with_line(encoded({"prompt": "x" * 100_000})))).facts
    assert facts.spots[Fault.LONG_LINE].first[0].line == 4
    assert facts.rows == len(HEALTHY)


def test_a_row_of_a_megabyte_is_over_long(tmp_path: Path) -> None:
    row = chatml("x" * (1 << 20))
    assert "line 4" in bad(findings(written(tmp_path, with_line(encoded(row)))))["D14"].evidence
    near = chatml("x" * 100_000)
    assert bad(findings(written(tmp_path, with_line(encoded(near))))) == {}


def test_over_long_rows_are_told_by_tokens_where_a_tokenizer_counts(tmp_path: Path) -> None:
    path = written(tmp_path, [encoded({"prompt": "word " * n}) for n in (3, 40, 41)])
    options = DataOptions(count_tokens=lambda text: len(text.split()), row_tokens_max=40)
    found = bad(findings(path, options))
    assert "line 3: 41 tokens" in found["D14"].evidence
    assert "beyond 40 tokens" in found["D14"].evidence


def test_texts_that_make_patterns_run_for_ever_do_not(tmp_path: Path) -> None:
    for text in ("<" + " " * 200_000, "<" * 200_000, " " * 200_000 + S, "|im_" * 50_000, f"{S}" * 20_000):
        assert read_file(written(tmp_path, with_line(encoded({"prompt": text})))).facts.rows == len(HEALTHY) + 1


def test_markers_that_json_escapes_are_markers_too(tmp_path: Path) -> None:
    lines = [row.replace(b"<", b"\\u003c").replace(b">", b"\\u003e") for row in HEALTHY]
    assert bad(findings(written(tmp_path, [*HEALTHY[:4], *lines[4:]]))) == {}
    assert read_file(written(tmp_path, lines)).facts.template == S


def test_a_gzip_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_lines, "BOMB_BYTES", 1 << 18)
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress((HEALTHY[0] + b"\n") * 15_000))
    found = findings(path)
    assert found[0].verdict is Verdict.FATAL
    assert "times its size" in found[0].evidence


def test_a_gzip_file_that_is_cut_tells_how_far_it_came(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(encoded(chatml(str(zlib.crc32(b"%d" % n)))) + b"\n" for n in range(2000)))
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    found = findings(path)
    assert "gzip:" in found[0].evidence
    assert found[0].subject == "Only the beginning of the file can be read"
    path.write_bytes(b"not gzip")
    assert findings(path)[0].subject == "The file can't be read"


def test_many_shapes_and_many_different_rows_stay_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_rows, "HASHES_MAX", 64)
    lines = [encoded({"prompt": f"{n}", f"key{n}": n}) for n in range(2000)]
    doubled = [line for line in lines for _ in range(2)]
    reading = read_file(written(tmp_path, doubled))
    assert reading.facts.duplicates_sampled
    assert 1000 < reading.facts.count(Fault.DUPLICATE) < 4000
    assert len(reading.facts.spots) <= 3


def test_progress_tells_bytes_read_and_their_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = written(tmp_path, HEALTHY * 200)
    read_file(path, progress=lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {path.stat().st_size}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
