"""Which examples of docstrings are left out where AnnData is missing.

The environment that has it runs them in tests/tl/test_examples.py (`make test-anndata`).
"""

from importlib.util import find_spec

WITH_ANNDATA = ("assessment", "atlas", "coordinates", "scanpy_graph")

collect_ignore = [] if find_spec("anndata") else [f"manifoldry/tl/{m}.py" for m in WITH_ANNDATA]
