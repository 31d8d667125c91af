"""``python -m rlvitals_migrations 0002 "what changed"``: writes the next revision from METADATA."""

from __future__ import annotations

import sys

from sqlalchemy import create_engine

import rlvitals_migrations


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        sys.stderr.write('usage: python -m rlvitals_migrations REVISION "what changed"\n')
        return 2
    with create_engine("sqlite://").begin() as connection:
        rlvitals_migrations.upgrade(connection)
        rlvitals_migrations.write_revision(connection, *argv)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
