"""
A report for colleagues who do not write code
=============================================

For anyone whose result goes to people who only want to know what to believe. One call reads a table,
makes several maps, checks them and writes an HTML file that opens in any browser and can be mailed.
Here is what it finds in a table of wines with the usual accidents.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import manifoldry
from manifoldry.plotting import plot_grid

# %%
# The accidents: a row that occurs twice, missing values, and a decimal point in the wrong place.

wine = load_wine(as_frame=True)
table = wine.data.copy()
table["cultivar"] = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
table.iloc[9, :13] = table.iloc[8, :13]
table.loc[[20, 40, 60], "hue"] = np.nan
table.loc[100, "magnesium"] *= 10

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder, "wine.html")
    found = manifoldry.report(table, page, labels="cultivar", n_refits=0)
    print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB")
print(found)
import json

print(json.dumps(found.summary, default=str)[:6000])
print([a for a in dir(found) if a[0] != "_"])
