"""Flags through slime's own parser, as a JSON line: what the flags of ours were given, and what it doesn't know.

``python flags.py FLAG…``. Megatron's parser, to which slime's adds, and sglang's need GPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import types

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])

OURS = (
    "custom_rollout_log_function_path",
    "custom_eval_rollout_log_function_path",
    "custom_megatron_before_train_step_hook_path",
    "rollout_data_postprocess_path",
    "custom_megatron_init_path",
)
SGLANG = {
    "arguments": ("sglang_parse_args", "validate_args"),
    "external": ("apply_external_engine_info_to_args",),
}


def main(flags: list[str]) -> None:
    for module, names in SGLANG.items():
        made = types.ModuleType(f"slime.backends.sglang_utils.{module}")
        for name in names:
            setattr(made, name, None)
        sys.modules[made.__name__] = made
    from slime.utils.arguments import get_slime_extra_args_provider
    from slime.utils.misc import load_function

    parser = get_slime_extra_args_provider()(argparse.ArgumentParser(allow_abbrev=False))
    known, rest = parser.parse_known_args(flags)
    functions = [load_function(getattr(known, name)) for name in OURS]
    unknown = sorted(word for word in rest if word.startswith("--"))
    print("\n" + json.dumps({"ours": [f"{f.__module__}.{f.__name__}" for f in functions], "unknown": unknown}))


if __name__ == "__main__":
    main(sys.argv[1:])
