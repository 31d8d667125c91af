"""Whether a certificate and its key can be served with, told before anything else is done."""

from __future__ import annotations

import ssl
from pathlib import Path


class _Locked(Exception):
    pass


def tls_fault(certificate: Path, key: Path) -> str:
    """Why they cannot be used; empty when they can. Nobody is asked for a pass phrase."""
    for option, file in (("--tls-cert", certificate), ("--tls-key", key)):
        try:
            file.read_bytes()
        except OSError as error:
            return f"{option}: cannot read {file}: {error.strerror}"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_pass_phrase)
    except _Locked:
        return f"--tls-key: {key} is locked by a pass phrase; expected a key without one, in a file of yours alone"
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"--tls-key: {key} is not the key of the certificate in {certificate}"
        return f"--tls-cert, --tls-key: expected a certificate chain and its key in PEM: {certificate}, {key}"
    return ""


def _no_pass_phrase() -> str:
    raise _Locked
