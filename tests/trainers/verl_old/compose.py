"""Composes Agent-R1's configuration with the overrides of a command line: a wrong key fails as in a real job."""

from __future__ import annotations

import sys
from pathlib import Path


def main(overrides: list[str]) -> None:
    import agent_r1
    import verl
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    folder = Path(str(agent_r1.__path__[0])) / "config"
    path = f"hydra.searchpath=[file://{Path(verl.__file__).parent}/trainer/config]"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("agent_ppo_trainer", overrides=[path, *overrides])
    print(OmegaConf.to_yaml(config.actor_rollout_ref.rollout))


if __name__ == "__main__":
    main(sys.argv[1:])
