"""Probes: tensors, arrays and token ids in, a `Tally` of the registry's metrics out.

Pure and detached: no gradient graph is kept, no global random state is touched, nothing is drawn from the
trainer's generators. The text probes need numpy only; torch is imported by the probes that take tensors.
"""
