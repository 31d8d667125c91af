"""What our hooks would find in the verl that is installed here: read from its sources, nothing is imported.

Needs neither verl nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rlvitals.guard import attempt
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.verl.settings import verl_version, version_numbers

VERSIONS = ("0.4.1", "0.5.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.1")
"""Releases that were tried, see docs/integrations/verl.md for how far each."""
V1_SINCE, ENGINES_SINCE = (0, 9), (0, 8)
_V1, _V0 = "trainer/ppo/v1/trainer_base.py", "trainer/ppo/ray_trainer.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One definition in one file of verl; ``since`` is the first release that has it."""

    name: str
    file: str
    definition: str
    gives: str
    since: tuple[int, int] = (0, 2)
    optional: bool = False

    @property
    def target(self) -> str:
        return f"verl.{self.file.removesuffix('.py').replace('/', '.')}.{self.definition}"


PLACES = (
    Place(
        name="scalars",
        file="utils/tracking.py",
        definition="Tracking.log",
        gives="steps, trainer metrics, and in trainers before V1 the batch and all control",
    ),
    Place(
        name="batch of V0",
        file=_V0,
        definition="RayPPOTrainer.fit",
        gives="completions, log-probs, rewards of the V0 trainer",
    ),
    Place(
        name="batch",
        file=_V1,
        definition="PPOTrainer._compute_metrics",
        gives="completions, log-probs, rewards of the V1 trainer",
        since=V1_SINCE,
    ),
    Place(
        name="fit",
        file=_V1,
        definition="PPOTrainer.fit",
        gives="that a run of V1 begins and how it ends",
        since=V1_SINCE,
    ),
    Place(name="control", file=_V1, definition="PPOTrainer.on_step_end", gives="commands of V1", since=V1_SINCE),
    Place(
        name="loss",
        file="workers/utils/losses.py",
        definition="ppo_loss",
        gives="ratios of new to old policy, with token ids",
        since=ENGINES_SINCE,
    ),
    Place(
        name="optimizer",
        file="workers/engine/fsdp/transformer_impl.py",
        definition="FSDPEngine.optimizer_step",
        gives="gradients by parameter, and how far an optimizer step moves the weights",
        since=ENGINES_SINCE,
        optional=True,
    ),
    Place(
        name="commands to workers",
        file="single_controller/base/worker.py",
        definition="Worker.execute_with_func_generator",
        gives="the KL coefficient in the loss, the learning rate, and what workers measured",
    ),
)


def hooks() -> HookTable:
    """Found, or absent and why, for each place of the installed release; all absent where there is no verl."""
    release = verl_version()
    table, root = HookTable("verl", release), _root()
    for place in PLACES:
        newer = version_numbers(release) < place.since
        found = root is not None and place.definition in (attempt(_definitions, root / place.file) or ())
        why = "" if found else _why(place, release, root)
        table.add(place.name, place.target, place.gives, patched=found, why=why, optional=place.optional or newer)
    return table


def _why(place: Place, release: str, root: Path | None) -> str:
    if root is None:
        return "verl is not installed here"
    if version_numbers(release) < place.since:
        return f"verl {release} has it not yet: it came with {place.since[0]}.{place.since[1]}"
    if not (root / place.file).is_file():
        return f"verl {release} has no {place.file}"
    return f"{place.file} of verl {release} does not define {place.definition}"


def _root() -> Path | None:
    """The folder of the package, found without importing it."""
    spec = attempt(find_spec, "verl")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def _definitions(file: Path) -> set[str]:
    """Functions by name, methods by ``Class.name``."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found
