"""Settings for all tests."""

import os

# Test workers share the cores already; with a pool of BLAS threads in each, most of the time went
# into waiting for one another (ten times the whole). It has to be said before numpy is imported.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
