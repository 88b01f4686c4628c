"""The classes whose objects a model file may contain, by their short names.

Nothing else can be loaded. A class is imported only when a file names it, and an object is made
without calling its constructor, so that loading runs no code but that of the attributes' storage.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

_OURS = {
    "affinity.bandwidths": "Bandwidths",
    "affinity.dense": "RBF PairwiseKernel GivenKernel Centered",
    "affinity.entropic": "Entropic EntropicWeights FrozenEntropicWeights",
    "affinity.gaussian": (
        "Gaussian GaussianWeights Binary BinaryWeights SelfTuning SelfTuningWeights "
        "FrozenSelfTuningWeights"
    ),
    "density.factors": "FactorMixture",
    "density.held_out_width": "WidthTrial",
    "density.leave_one_out": "DensityTrial",
    "density.manifold_parzen": "ManifoldParzen",
    "density.mixture_of_factor_analyzers": "MixtureOfFactorAnalyzers",
    "density.window_mixture": "ParzenOptions WindowMixture",
    "density.windows": "Windows",
    "eigen.auto": "Auto",
    "eigen.dense": "Dense",
    "eigen.lanczos": "ProbeLimits Lanczos",
    "eigen.lobpcg": "Lobpcg",
    "eigen.randomized": "Randomized",
    "eigen.shift_invert": "ShiftInvertLanczos",
    "eigen.spectrum": "Acceptance",
    "extension.affine": "AffineMap PiecewiseAffineMap",
    "extension.affinity_rows": "ProbabilityRows KernelRows",
    "extension.base": "Nystrom",
    "extension.data_regression": "DataRegression",
    "extension.elastic_inverse": "ElasticInverse WidthFactors",
    "extension.from_distances": "DistancesToTraining GowerKernel GeodesicExtension Triangulation",
    "extension.kernel_pairs": "KernelPairs",
    "extension.kernel_regression": "KernelRegressionMap",
    "extension.laplacian": "GraphWeights KernelWeights GivenWeights LaplacianExtension",
    "extension.layout": "ComponentGeometry Layout",
    "extension.local": "Barycentric BarycentricKernel LocalAffine TangentInverse",
    "extension.new_points": "NewPointOptimizer OptimizedExtension",
    "extension.new_point_objective": "TrustRegion",
    "extension.preimage": "KernelRidge FixedPoint",
    "extension.projection": "DampedNewton OrthogonalProjection FramedProjection FramedRegression",
    "extension.random_walk": "RandomWalkWeights",
    "extension.regression": "Smoother EmbeddingSpacing LocalRegression",
    "extension.regressor": "RegressorExtension RegressorInverse",
    "extension.relative_distance": "Unit RelativeDistance UnknownDistance DistanceOnMap",
    "extension.weight_function": "FunctionWeights",
    "iterative.elastic_embedding": "ElasticEmbedding",
    "iterative.sne": "SNE SymmetricSNE",
    "iterative.tsne": "TSNE",
    "iterative.ukr": "UKR",
    "iterative.ukr_floor": "Floor",
    "lie.flow": "EigenFlow SeriesFlow",
    "lie.pairs": "Basis",
    "lie.transform": "LieTransform",
    "neighbors.approximate": "ApproximateIndex",
    "neighbors.brute": "BruteIndex CosineIndex",
    "neighbors.choose": "GeneralIndex",
    "neighbors.disconnected": "Bridge Disconnection DisconnectedPolicy",
    "neighbors.distances": "Frame",
    "neighbors.geodesics": "Geodesics SampledGeodesics",
    "neighbors.graph": "NeighborGraph",
    "neighbors.kdtree": "KDTreeIndex",
    "neighbors.precomputed": "DenseDistances SparseDistances",
    "neighbors.removed_edges": "RemovedEdges",
    "neighbors.short_circuits": "ShortCircuitOptions ShortCircuits",
    "nonredundant.criteria": "PredictionCriterion GradientCriterion",
    "nonredundant.estimator": "NonRedundant",
    "nonredundant.extension": "InterpolationPoints CorrectedExtension",
    "nonredundant.smoother": "KernelSmoother",
    "objectives.bifurcation": "Bifurcation",
    "objectives.cell_list": "CellSums",
    "objectives.exact": "Exact",
    "objectives.factored_weights": "FactoredWeights",
    "objectives.fastest": "ChosenSums Fastest",
    "objectives.fft_interpolation": "FFTInterpolation",
    "objectives.normalizers": "Joint PerPoint Unnormalized",
    "objectives.pair_kernel": "GaussianKernel StudentKernel ComplementKernel",
    "objectives.pairwise": "NewPointTerms Pairwise",
    "objectives.projected_distance": "Projection ProjectedDistanceRepulsion",
    "objectives.regression_kernels": (
        "GaussianRegressionKernel StudentRegressionKernel QuarticKernel TriweightKernel"
    ),
    "objectives.regression_pairs": "RegressionPairs",
    "objectives.repulsion": "UniformRepulsion SparseRepulsion DenseRepulsion ScaledRepulsion",
    "objectives.squared_distance": "SquaredDistanceRepulsion",
    "optimize.filter": "Identity Jacobi DiagonalHessian",
    "optimize.guidance": "EveryStep OnSlowProgress Never",
    "optimize.guidance_filters": "Projector Power DeflatedPower Heat",
    "optimize.homotopy": "PathStep Path EarlyExaggeration Homotopy",
    "optimize.line_search": "Armijo StrongWolfe",
    "optimize.methods": "GradientDescent ConjugateGradient LBFGS Momentum",
    "optimize.spectral_direction": "SpectralDirection",
    "optimize.stopping": "Stopping",
    "semidefinite.conformal_eigenmaps": "ConformalEigenmaps",
    "semidefinite.maximum_variance_unfolding": "MaximumVarianceUnfolding MVU",
    "semidefinite.multipliers": "MethodOfMultipliers",
    "spectral.classical_mds": "ClassicalMDS",
    "spectral.diffusion_maps": "DiffusionMaps",
    "spectral.hessian_lle": "HessianLLE HessianAlignment",
    "spectral.isomap": "Isomap",
    "spectral.kernel_pca": "KernelPCA",
    "spectral.laplacian_eigenmaps": "LaplacianEigenmaps",
    "spectral.lle": "LLE Reconstruction",
    "spectral.locally_linear_embedding": "LocallyLinearEmbedding",
    "spectral.ltsa": "LTSA PlaneAlignment",
    "spectral.metric_fit": "MetricFit",
    "spectral.modified_lle": "ModifiedLLE MultipleReconstructions",
    "spectral.pca": "PCA",
    "spectral.spectral_clustering": "SpectralClustering UnitRows",
    "spectral.spectral_embedding": "SpectralEmbedding",
    "tl.genes": "GeneExpression",
    "util.estimate": "Estimate",
    "util.rows": "RowLookup",
    "wrappers.calibration": "LocalError",
    "wrappers.conformal_inverse": "ConformalInverse",
    "wrappers.from_density": "FromDensity",
}
# scikit-learn's, with a prefix, since some names are ours as well.
_SKLEARN = {
    "cluster": "KMeans",
    "compose": "ColumnTransformer",
    "decomposition": "PCA TruncatedSVD IncrementalPCA",
    "feature_selection": "VarianceThreshold",
    "impute": "SimpleImputer KNNImputer",
    "kernel_ridge": "KernelRidge",
    "linear_model": "LinearRegression Ridge",
    "neighbors": "KNeighborsRegressor",
    "pipeline": "Pipeline FeatureUnion",
    "preprocessing": (
        "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler Normalizer PowerTransformer "
        "QuantileTransformer OneHotEncoder OrdinalEncoder FunctionTransformer"
    ),
}


@cache
def _modules() -> dict[str, str]:
    """Module of every class, by the name that files use."""
    ours = {name: f"manifoldry.{at}" for at, names in _OURS.items() for name in names.split()}
    theirs = {
        f"sklearn.{name}": f"sklearn.{at}"
        for at, names in _SKLEARN.items()
        for name in names.split()
    }
    return ours | theirs


@cache
def _names() -> dict[tuple[str, str], str]:
    """Name in files of a class, given its package and its own name."""
    return {
        (module.split(".")[0], name.split(".")[-1]): name for name, module in _modules().items()
    }


def name_of(kind: type) -> str | None:
    """The name of a class in files, or None if its objects cannot be saved."""
    name = _names().get((kind.__module__.split(".")[0], kind.__name__))
    return name if name is not None and class_named(name) is kind else None


def class_named(name: str) -> type | None:
    """The class of a name in a file, or None if it is none that can be loaded."""
    module = _modules().get(name)
    if module is None:
        return None
    found: type = getattr(import_module(module), name.split(".")[-1])
    return found


def sklearn_names() -> list[str]:
    """The classes of scikit-learn whose objects can be saved."""
    return sorted(name for names in _SKLEARN.values() for name in names.split())
