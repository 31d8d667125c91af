"""What is required is named in the bills, has a licence that somebody has looked at, and is asked about."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import audit, licences, sbom
from deploy.audit import NoAnswer, weaknesses
from deploy.dependencies import OPTIONAL, SERVICE, Dependency, required

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WEAK = Dependency(name="somewhat", version="1.0", licence="MIT")
SOUND = Dependency(name="sound", version="2.0+cpu", licence="MIT")


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("bills")
    assert sbom.main([str(folder)]) == 0
    return {name: json.loads((folder / f"rlvitals-{name}.cdx.json").read_text()) for name in sbom.BILLS}


def names(bill: dict[str, Any]) -> set[str]:
    return {canonicalize_name(one["name"]) for one in bill["components"]}


def test_the_client_requires_nothing_and_its_bill_says_so(bills: dict[str, Any]) -> None:
    assert required(()) == ()
    assert bills["client"]["components"] == []
    assert bills["client"]["metadata"]["component"]["name"] == "rlvitals"


def test_the_services_bill_names_each_package_that_it_requires_and_no_tool_of_ours(bills: dict[str, Any]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = {canonicalize_name(Requirement(line).name) for extra in SERVICE for line in extras[extra]}
    assert asked <= names(bills["server"])
    assert {one.name for one in required(SERVICE)} == names(bills["server"])
    assert not names(bills["server"]) & {"pytest", "ruff", "torch", "mypy", "rlvitals"}
    assert {"mcp", "pyarrow", "apprise"} <= names(bills["server-all-extras"])


def test_a_bill_says_versions_licences_and_who_requires_what(bills: dict[str, Any]) -> None:
    bill = bills["server"]
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    for one in bill["components"]:
        assert one["version"], one["name"]
        assert one["purl"].startswith("pkg:pypi/"), one["name"]
        assert one["licenses"], one["name"]
    refs = {one["bom-ref"] for one in bill["components"]}
    links = {one["ref"]: set(one["dependsOn"]) for one in bill["dependencies"]}
    assert set(links) == refs | {"root-component"}
    assert set().union(*links.values()) == refs


def test_a_bill_is_valid_by_the_schema(bills: dict[str, Any]) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    some = sbom.keep(bills["server"], ("psycopg", "psycopg-binary", "typing-extensions"))
    assert len(some["components"]) == 3
    for bill in (bills["client"], some):
        assert validator.validate_str(json.dumps(bill)) is None
    wrong = {**some, "components": [{**some["components"][0], "type": "libary"}]}
    assert validator.validate_str(json.dumps(wrong)) is not None


def test_no_licence_of_what_we_require_is_a_surprise() -> None:
    assert licences.faults(required((*SERVICE, *OPTIONAL))) == []


@pytest.mark.parametrize(
    ("name", "licence", "fine"),
    [
        ("x", "MIT", True),
        ("x", "BSD-3-Clause AND 0BSD AND (MIT OR GPL-3.0-only)", True),
        ("x", "GPL-3.0-only", False),
        ("x", "MIT AND AGPL-3.0-only", False),
        ("x", "not told", False),
        ("psycopg", "LGPL-3.0-only", True),
        ("psycopg", "AGPL-3.0-only", False),
    ],
)
def test_a_licence_is_permissive_or_known_or_a_fault(name: str, licence: str, fine: bool) -> None:
    assert (licences.faults([Dependency(name=name, version="1", licence=licence)]) == []) is fine


@contextmanager
def osv() -> Iterator[str]:
    """A vulnerability service that knows one weakness."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            known = {"package": {"name": WEAK.name, "ecosystem": "PyPI"}, "version": WEAK.version}
            body = json.dumps({"vulns": [ADVISORY]} if asked == known else {}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
        server.shutdown()


ADVISORY = {
    "id": "PYSEC-2026-1",
    "details": "a weakness",
    "published": "2026-01-01T00:00:00Z",
    "modified": "2026-01-01T00:00:00Z",
    "aliases": ["CVE-2026-1"],
    "affected": [
        {
            "package": {"name": WEAK.name, "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
            "versions": ["1.0"],
        }
    ],
}


def test_a_known_weakness_is_told_with_what_repairs_it() -> None:
    with osv() as url:
        assert weaknesses([WEAK, SOUND], url) == ["somewhat 1.0: PYSEC-2026-1, repaired in 1.1"]


def test_without_a_service_the_audit_is_skipped_loudly_and_fails_only_where_it_must(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NoAnswer, match="refused"):
        weaknesses([SOUND], "http://127.0.0.1:9/v1/query")

    def nobody(*_: object) -> list[str]:
        raise NoAnswer("refused")

    monkeypatch.setattr(audit, "weaknesses", nobody)
    assert audit.main([]) == 0
    assert "DEPENDENCY AUDIT SKIPPED" in capsys.readouterr().err
    assert audit.main(["--strict"]) == 1


def test_a_found_weakness_fails_the_audit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "weaknesses", lambda *_: ["somewhat 1.0: PYSEC-2026-1, repaired in 1.1"])
    assert audit.main([]) == 1
    assert "a known weakness: somewhat 1.0" in capsys.readouterr().err
