from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rlvitals_monitor.tls import tls_fault

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="NO TLS TESTS: there is no openssl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    for name, more in (("key", ()), ("another", ()), ("locked", ("-aes-128-cbc", "-pass", "pass:four words"))):
        openssl("genpkey", *curve, *more, "-out", str(folder / f"{name}.pem"))
    made = ("-key", str(folder / "key.pem"), "-out", str(folder / "cert.pem"), "-subj", "/CN=localhost")
    openssl("req", "-x509", *made, "-days", "2")
    (folder / "text.pem").write_text("no PEM at all\n")
    return folder


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def test_a_certificate_with_its_key_is_good(folder: Path) -> None:
    assert tls_fault(folder / "cert.pem", folder / "key.pem") == ""


@pytest.mark.parametrize(
    ("certificate", "key", "told"),
    [
        ("none.pem", "key.pem", "--tls-cert: cannot read {}/none.pem: No such file or directory"),
        ("cert.pem", "none.pem", "--tls-key: cannot read {}/none.pem: No such file or directory"),
        ("cert.pem", "", "--tls-key: cannot read {}: Is a directory"),
        (
            "cert.pem",
            "another.pem",
            "--tls-key: {0}/another.pem is not the key of the certificate in {0}/cert.pem",
        ),
        ("cert.pem", "locked.pem", "--tls-key: {}/locked.pem is locked by a pass phrase"),
        ("text.pem", "key.pem", "expected a certificate chain and its key in PEM: {}/text.pem"),
        ("cert.pem", "text.pem", "expected a certificate chain and its key in PEM: {0}/cert.pem, {0}/text.pem"),
    ],
)
def test_what_cannot_be_served_with_is_told_with_its_file_and_nobody_is_asked(
    folder: Path, certificate: str, key: str, told: str
) -> None:
    assert told.format(folder) in tls_fault(folder / certificate, folder / key)
