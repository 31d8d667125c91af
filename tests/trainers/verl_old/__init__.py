"""verl's own driver (`RayPPOTrainer.fit` of each old release), with stand-ins for its workers on GPUs."""
