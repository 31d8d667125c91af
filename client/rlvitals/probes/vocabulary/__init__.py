"""What each id of a tokenizer stands for; one module for each kind of tokenizer."""

from rlvitals.probes.vocabulary.find import find_source, read_vocabulary
from rlvitals.probes.vocabulary.vocabulary import Decode, Family, Source, Vocabulary, byte_alphabet

__all__ = ["Decode", "Family", "Source", "Vocabulary", "byte_alphabet", "find_source", "read_vocabulary"]
