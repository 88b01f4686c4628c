"""
Interrupt a long fit and continue it later
==========================================

A fit of many points takes minutes or hours. Meanwhile laptops are closed and jobs are killed. This
example watches a fit, stops it, and continues it from a file. The result is that of an
uninterrupted fit, bit for bit.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldry import TSNE
from manifoldry.optimize import Checkpoint
from manifoldry.plotting import plot_embedding

X, y = load_digits(n_class=6, return_X_y=True)
X, y = X[:360], y[:360]
path = Path(mkdtemp()) / "digits.npz"

# %%
# Stop, then continue
# -------------------
# A ``Checkpoint`` is a callback that saves the state of the search in a file at intervals, after
# Ctrl-C and after an error. Its ``function`` sees every step and may stop the fit by returning
# True. Here it does so at step 45, as if somebody had closed the laptop. (An estimator with
# ``verbose=True`` prints the same progress with the time left.)

laptop = Checkpoint(path, function=lambda it: it.step.iteration == 45)
stopped = TSNE(callback=laptop).fit(X)
print(
    f"{stopped.status_} after {stopped.n_iter_} steps; the file has {path.stat().st_size >> 10} KB"
)

# %%
# The same script, run again, finds the file and goes on at the next step. The early map shows
# knots: t-SNE was still in its first phase. The final one shows the digits.

seen = []
again = Checkpoint(path, function=lambda it: seen.append(it.step.iteration))
continued = TSNE(callback=again).fit(X)

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot_embedding(stopped, y, ax=axes[0], title="stopped at step 45", legend=False)
ax = plot_embedding(continued, y, ax=axes[1], title="continued to the end", color_label="digit")

# %%
# The same bits
# -------------

whole = TSNE().fit(X)
print(f"continued at step {seen[0]}")
print(f"the same embedding: {np.array_equal(continued.embedding_, whole.embedding_)}")

# %%
# A file of other data or other parameters is not used by mistake:

try:
    TSNE(perplexity=12, callback=Checkpoint(path)).fit(X)
except ValueError as error:
    print(str(error).split(": ", 1)[1])
plt.show()

# %%
# Pass a ``Checkpoint`` to every fit that you would not like to repeat. By default it saves every
# five minutes. To limit the time instead, pass an optimizer with ``Stopping(max_time=600)``. The
# fit then returns the embedding that it has reached after ten minutes, with ``converged_ = False``.
# See :doc:`/scale` for what a checkpoint contains, and
# :ref:`sphx_glr_gallery_iterative_start_from_a_model.py` for a first look at a sample.
