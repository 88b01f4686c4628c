"""Functions on AnnData objects, with the conventions of scanpy's ``sc.tl``.

They read what scanpy has stored, call the estimators and metrics of this package, and write the
results into ``obsm``, ``obs`` and ``uns``.
"""

from manifoldry.tl.assessment import assess
from manifoldry.tl.atlas import fit_atlas, map_cells
from manifoldry.tl.coordinates import diffmap, embed
from manifoldry.tl.genes import GeneExpression
from manifoldry.tl.scanpy_graph import ScanpyGraph

__all__ = ["GeneExpression", "ScanpyGraph", "assess", "diffmap", "embed", "fit_atlas", "map_cells"]
