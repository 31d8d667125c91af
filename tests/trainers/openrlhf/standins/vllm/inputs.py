from __future__ import annotations


class TokensPrompt(dict):  # type: ignore[type-arg]
    """Ids of a prompt, by the names that vLLM has for them."""
