"""What each peer's findings are called in the words of the case corpus, read generously."""

from __future__ import annotations

WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "rlwatch": {
        "entropy_collapse": ("entropy_collapse",),
        "kl_explosion": ("kl_explosion",),
        "reward_hacking": ("reward_hacking",),
        "advantage_variance": ("critic_divergence",),
        "loss_nan": ("nan_inf",),
        "gradient_norm_spike": ("grad_spike",),
        "reward_mean_drift": ("reward_hacking", "reward_collapse"),
    },
    "rldoctor": {
        "advantage_collapse": ("zero_variance",),
        "entropy_collapse": ("entropy_collapse",),
        "reward_hacking": ("reward_hacking",),
        "length_pathology": ("length_explosion", "truncation_saturation", "truncation_warning"),
        "clip_saturation": ("clip_fraction_high",),
        "kl_drift": ("kl_drift", "kl_explosion"),
        "gradient_pathology": ("grad_spike", "nan_inf", "no_gradient"),
        "reward_composition": ("reward_component_constant",),
        "plateau": ("reward_stuck",),
    },
    "rlprobe": {
        "KL_BLOWUP": ("kl_explosion",),
        "ENTROPY_COLLAPSE": ("entropy_collapse",),
        "REWARD_HACK_LENGTH": ("reward_hacking", "length_explosion"),
        "FORMAT_GAMING": ("reward_hacking",),
        "CLIP_SATURATION": ("clip_fraction_high",),
        "DEGENERATE_GROUPS": ("zero_variance",),
        "ADV_COLLAPSE": ("zero_variance",),
        "VALUE_DIVERGENCE": ("critic_divergence",),
        "GRAD_PATHOLOGY": ("grad_spike", "nan_inf"),
        "TRUNCATION_STARVE": ("truncation_saturation", "truncation_warning"),
        "REPETITION_SPIRAL": ("repetition_loop",),
        "REWARD_STD_DEATH": ("zero_variance",),
        "REF_POLICY_DRIFT_ASYMMETRY": ("kl_drift",),
        "THROUGHPUT_ROT": ("throughput_drift",),
    },
}
