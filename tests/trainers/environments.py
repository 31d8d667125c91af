"""Virtual environments with other versions of trainers, made once and kept under ``.cache/trainers``.

``requirements/<name>.txt`` says what is installed beside what the development environment has (torch among it,
which is not copied); ``requirements/<name>.no-deps.txt`` what is installed without its bounds. An environment's
own packages go before those of the house.
"""

from __future__ import annotations

import fcntl
import hashlib
import site
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOUSE = Path(__file__).parents[2]
CACHE = HOUSE / ".cache" / "trainers"
REQUIREMENTS = Path(__file__).parent / "requirements"
PIP_S = 1800.0


def names() -> tuple[str, ...]:
    """All environments that there are requirements for."""
    return tuple(
        sorted({path.name.partition(".txt")[0].removesuffix(".no-deps") for path in REQUIREMENTS.glob("*.txt")})
    )


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made at first use. Raises RuntimeError with pip's last words."""
    files = [path for path in (_file(name, ""), _file(name, ".no-deps")) if path.is_file()]
    if not files:
        raise ValueError(f"{name}: expected one of {', '.join(names())}")
    folder = CACHE / f"{name}-{_digest(files)}"
    made = folder / ".made"
    with _alone(CACHE / f"{name}.lock"):
        if not made.exists():
            _make(folder, name)
            made.touch()
    return folder / "bin" / "python"


def _make(folder: Path, name: str) -> None:
    _call([sys.executable, "-m", "venv", "--clear", str(folder)])
    python = folder / "bin" / "python"
    own = Path(_call([str(python), "-c", "import site; print(site.getsitepackages()[0])"]).strip())
    house = next(path for path in site.getsitepackages() if (Path(path) / "torch").is_dir())
    # read after this environment's own packages, which thereby go before it
    (own / "zz_house.pth").write_text(f"import site; site.addsitedir({house!r})\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for ending, flags in (("", []), (".no-deps", ["--no-deps"])):
        if _file(name, ending).is_file():
            _call([*pip, *flags, "-r", str(_file(name, ending))])


def _file(name: str, ending: str) -> Path:
    return REQUIREMENTS / f"{name}{ending}.txt"


def _digest(files: list[Path]) -> str:
    told = b"".join(path.read_bytes() for path in files) + sys.version.encode()
    return hashlib.sha256(told).hexdigest()[:12]


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Two test processes may ask for the same environment at once."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
