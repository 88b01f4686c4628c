// Sparse matrices and columns, and the bandwidths of rows.

// A warp for a row and a column at a time: for few columns, whose entries it gathers.
template <class Real>
__global__ void product_few(const long long *indptr, const int *indices, const Real *data,
                            const Real *X, int n, int m, Real *out) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  for (int c = 0; c < m; ++c) {
    double total = 0;
    for (long long e = indptr[i] + lane; e < indptr[i + 1]; e += 32)
      total += (double)(data[e] * X[(long long)indices[e] * m + c]);
    for (int offset = 16; offset; offset /= 2)
      total += __shfl_down_sync(0xffffffff, total, offset);
    if (lane == 0) out[(long long)i * m + c] = (Real)total;
  }
}

// A warp for a row, a lane for each of up to 32 columns, which are next to each other in memory.
template <class Real>
__global__ void product_many(const long long *indptr, const int *indices, const Real *data,
                             const Real *X, int n, int m, Real *out) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, c = blockIdx.y * 32 + threadIdx.x % 32;
  if (i >= n || c >= m) return;
  Real total = 0;
  for (long long e = indptr[i]; e < indptr[i + 1]; ++e)
    total += data[e] * X[(long long)indices[e] * m + c];
  out[(long long)i * m + c] = total;
}

// The least sum of an entry of a row and the row of X that belongs to it, in the same way.
template <class Real>
__global__ void min_plus(const long long *indptr, const int *indices, const Real *data,
                         const Real *X, int n, int m, Real *out) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, c = blockIdx.y * 32 + threadIdx.x % 32;
  if (i >= n || c >= m) return;
  Real least = (Real)__int_as_float(0x7f800000);  // infinite
  for (long long e = indptr[i]; e < indptr[i + 1]; ++e) {
    Real sum = data[e] + X[(long long)indices[e] * m + c];
    least = sum < least ? sum : least;
  }
  out[(long long)i * m + c] = least;
}

// A step of Chebyshev's iteration for D − W: R ← R − (D − W)·S, X ← X + out, and the next step
// out = old·S + fresh·R/D, where `inverse` is 1/D. A warp for a row.
template <class Real>
__global__ void chebyshev_step(const long long *indptr, const int *indices, const Real *data,
                               const Real *diagonal, const Real *inverse, const Real *S, int n,
                               int m, Real old, Real fresh, Real *R, Real *X, Real *out) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  for (int c = 0; c < m; ++c) {
    double total = 0;
    for (long long e = indptr[i] + lane; e < indptr[i + 1]; e += 32)
      total += (double)(data[e] * S[(long long)indices[e] * m + c]);
    for (int offset = 16; offset; offset /= 2)
      total += __shfl_down_sync(0xffffffff, total, offset);
    if (lane) continue;
    long long at = (long long)i * m + c;
    Real residual = R[at] - (diagonal[i] * S[at] - (Real)total);
    Real step = old * S[at] + fresh * inverse[i] * residual;
    R[at] = residual;
    X[at] += step;
    out[at] = step;
  }
}

// The α at which the entropy of the weights exp(−eᵅ·t) of a row is `target`, a thread for a row; the
// rows are the columns of t. Newton's method, or bisection where it leaves the bracket: the entropy
// decreases with α.
__global__ void log_precisions(const double *t, int n, int k, int rank, double target, int steps,
                               double *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double low = -700, high = 700, alpha = 1 - log(t[(long long)rank * n + i]);
  for (int step = 0; step < steps; ++step) {
    double beta = exp(alpha), Z = 0, first = 0, second = 0;
    for (int j = 0; j < k; ++j) {
      double u = fmin(beta * t[(long long)j * n + i], 750.0), w = exp(-u);
      Z += w;
      first += w * u;
      second += w * u * u;
    }
    first /= Z;
    second /= Z;
    double residual = first + log(Z) - target, variance = second - first * first;
    if (residual > 0)
      low = alpha;
    else
      high = alpha;
    double next = alpha + residual / variance;  // the derivative of the entropy is −variance
    if (fabs(next - alpha) <= 1e-15 * fmax(1.0, fabs(alpha))) break;
    alpha = next > low && next < high ? next : (low + high) / 2;
  }
  out[i] = alpha;
}
