"""Probes: tensors, arrays and token ids in, a `Tally` of the registry's metrics out.

Pure and detached: no gradient graph is kept, no global random state is touched, nothing is drawn from the
trainer's generators. The text probes need numpy only; torch is imported by the probes that take tensors.

A ``measure_…`` function takes tensors of any float type, strides and device, nested and jagged ones too (see
`nested`), launches its sums in doubles and returns a `reduction.Reduction`; nothing is read before its one copy. A
``tally_…`` function waits for the sums, and takes arrays as well. An argument that cannot be measured raises a
`arguments.ProbeArgumentError` that names it.

The same input gives the same bits again, on one device with one number of threads. Counts, extremes and their
places never depend on either; sums agree to rounding, and on a GPU sums by token id are added in no fixed order.
"""
