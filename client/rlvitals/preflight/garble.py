"""What damaged text becomes in a vocabulary, for the checks of the data that find it."""

from __future__ import annotations

from collections.abc import Mapping

from rlvitals.guard import outcome
from rlvitals.preflight.data_faults import Fault
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

_SPELT = {
    Fault.BOM_INSIDE: ("\ufeff", "which the model rarely saw"),
    Fault.REPLACEMENT: ("\ufffd", "the model can reproduce it"),
    Fault.CARRIAGE_RETURN: ("\r\n", "another spelling than the template's"),
}


def spell_damage(tokens: TokenizerFacts | None) -> Mapping[Fault, str]:
    """Kind of damage → its ids in this vocabulary, in words; without what the tokenizer refuses."""
    if tokens is None:
        return {}
    ids = {fault: outcome(tokens.encode, text)[0] for fault, (text, _) in _SPELT.items()}
    return {
        fault: f"{text!a} is {tokens.show(ids[fault] or ())} here: {why}"
        for fault, (text, why) in _SPELT.items()
        if ids[fault]
    }
