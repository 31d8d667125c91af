"""What a command prints: no encoding, full disk, closed stream or absent reader ends in a traceback."""

from __future__ import annotations

import errno
import os
import sys


def print_report(text: str, command: str, code: int) -> int:
    """Writes to stdout, what the stream's encoding lacks as escapes.

    Returns ``code``, also where nobody reads (any more), and 2 where it could not be written, said on stderr.
    """
    if sys.stdout is None:
        return code
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        # the interpreter flushes once more when it ends, and would tell the same again
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            sys.stderr.write(f"{command}: the report can't be written: {error.strerror}\n")
            return 2
    return code


def printable(text: str) -> str:
    """Text of others with what may steer a terminal as escapes."""
    return "".join(c if c.isprintable() else escape(ord(c)) for c in text)


def escape(code: int) -> str:
    """A code point spelt out."""
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
