"""Maps to new points and back: equivalent kernels, affine maps, regression."""
