"""Transformations with known generators."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import expm


def spectral_derivative(n):
    """The matrix that differentiates band-limited cyclic signals, without the Nyquist frequency."""
    frequency = np.fft.fftfreq(n) * n
    frequency[np.abs(frequency) >= n / 2] = 0
    factor = 2j * np.pi * frequency / n
    return np.fft.ifft(factor[:, None] * np.fft.fft(np.eye(n), axis=0), axis=0).real


def band_limited(n_rows, n, rng, cut=None):
    frequency = np.abs(np.fft.fftfreq(n) * n)
    keep = frequency < (n / 2 if cut is None else cut)
    return np.fft.ifft(np.fft.fft(rng.normal(size=(n_rows, n))) * keep).real


def moved(X, generators, amounts):
    """exp(Σ αᵢGᵢ)x, one matrix exponential of scipy's per row."""
    return np.array(
        [expm(np.tensordot(a, generators, axes=1)) @ x for a, x in zip(amounts, X, strict=True)]
    )


def translations(n_pairs=400, n=20, largest=0.2, seed=0, cut=None, noise=0.0):
    rng = np.random.default_rng(seed)
    D = spectral_derivative(n)
    X = band_limited(n_pairs, n, rng, cut)
    amounts = rng.uniform(-largest, largest, (n_pairs, 1))
    Y = moved(X, D[None], amounts)
    X, Y = (rows + noise * rng.normal(size=rows.shape) for rows in (X, Y))
    return SimpleNamespace(X=X, Y=Y, amounts=amounts, generator=D)


def cosine(A, B):
    return abs((A * B).sum()) / np.linalg.norm(A) / np.linalg.norm(B)


@pytest.fixture(scope="session")
def shifts():
    """Signals of 20 pixels, shifted by up to a fifth of a pixel."""
    return translations()
