"""RL Vitals: the vital-signs monitor for RL post-training of language models."""

__version__ = "0.1.0"
