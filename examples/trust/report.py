"""
A report for colleagues who do not write code
=============================================

You want to show a result to people who only need to know what to believe. One call reads a table,
makes several maps, checks them, and writes an HTML page that you can open in any browser and send
by mail. Here is what it finds in a table of wines with the usual errors.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import manifoldry
from manifoldry.plotting import plot_embedding

# %%
# The table has three errors: a row that occurs twice, missing values, and a decimal point in the
# wrong place.

wine = load_wine(as_frame=True)
table = wine.data.copy()
table["cultivar"] = wine.target.map({0: "A", 1: "B", 2: "C"})
table.iloc[9] = table.iloc[8]
table.loc[[20, 40, 60], "hue"] = np.nan
table.loc[100, "magnesium"] *= 10

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder, "wine.html")
    found = manifoldry.report(table, page, labels="cultivar", n_refits=0)
    print(f"wrote {page.name}, {page.stat().st_size / 1000:.0f} kB")

# %%
# These are the maps of the page, where you can explore them with the mouse. The red circle marks
# the row with the decimal error: it stands out only on the map by Isomap. The last panel is the map
# that the report recommends, colored by the trustworthiness of each row.

maps = {each.name: each for each in found.results.maps}
chosen = maps[found.summary["verdict"]["name"]]
fig, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
for ax, each in zip(axes.flat, maps.values(), strict=False):
    plot_embedding(each.aligned, table["cultivar"], ax=ax, title=each.name, legend=ax is axes[0, 2])
    ax.plot(*each.aligned[100], "o", ms=14, mfc="none", mec="red", mew=2)
title = f"{chosen.name}: trustworthiness"
_ = plot_embedding(chosen.aligned, chosen.trust, ax=axes[1, 2], title=title)
plt.show()

# %%
# The page begins with a verdict and with what not to conclude. ``print`` shows the same. It also
# shows the advice, which names all three errors.

print(found)

# %%
# The command ``manifoldry report wine.csv --label cultivar`` writes such a page without any Python.
# ``n_refits=0`` leaves out the stability of the maps to save time. Do not use it for a real report.
# :doc:`/report` explains every part of the page, :doc:`/trust` explains the numbers, and
# :ref:`sphx_glr_gallery_trust_same_map_twice.py` shows what stability would add.
