// Points and the nodes of a regular mesh in up to three dimensions, with cubic B-splines as weights.
//
// Charges are added as integers of 64 bits, so that sums do not depend on their order. A unit is
// such that the sum of the sizes of all charges is less than 2^61; no sum can overflow then, since
// weights are at most one, and since rounding adds at most half a unit for each of fewer than 2^31
// points.

constexpr int THREADS = 128;   // of a block, except in `corners`
constexpr int NODES = 4;       // around a point along an axis
constexpr int MOST_BITS = 61;  // of the sum of the sizes of all charges

// Nodes are at (first + index)·spacing; the mesh has so many of them along each axis.
struct Mesh {
  double spacing, first[3];
  int shape[3];
};

// Cell of a point, and its position in the cell. Cells outside the mesh, of points that are not
// finite, are moved inside.
template <class Real, int D>
__device__ __forceinline__ void locate(const Real *y, const Mesh &mesh, int *cell, double *u) {
  for (int c = 0; c < D; ++c) {
    double position = (double)y[c] / mesh.spacing - mesh.first[c];
    cell[c] = min(max((int)position, 0), mesh.shape[c] - NODES);
    u[c] = position - cell[c];
  }
}

__device__ __forceinline__ void spline(double u, double *w) {
  double v = 1 - u;
  w[0] = v * v * v / 6;
  w[1] = 2.0 / 3 - u * u * (1 - u / 2);
  w[2] = 2.0 / 3 - v * v * (1 - v / 2);
  w[3] = u * u * u / 6;
}

__device__ __forceinline__ void spline_slope(double u, double *w) {
  double v = 1 - u;
  w[0] = -v * v / 2;
  w[1] = u * (1.5 * u - 2);
  w[2] = v * (2 - 1.5 * v);
  w[3] = u * u / 2;
}

// Sums of products of weights at distances of zero to three nodes, both ways.
__device__ __forceinline__ void products(const double *a, const double *b, double *out) {
  out[0] = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  out[1] = a[0] * b[1] + a[1] * b[2] + a[2] * b[3] + a[1] * b[0] + a[2] * b[1] + a[3] * b[2];
  out[2] = a[0] * b[2] + a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  out[3] = a[0] * b[3] + a[3] * b[0];
}

// A charge of one has 2^bits units. frexp gives the exponent of 2 above the total.
__device__ __forceinline__ int unit_bits(double total) {
  int exponent;
  frexp(total, &exponent);
  return MOST_BITS - exponent;
}

// The least and the largest coordinate of the points that a block reads, a row of D for each. An
// entry that is NaN stays.
template <class Real, int D>
__global__ void corners(const Real *Y, long long n, double *out) {
  __shared__ double shared[2][D][32];
  double low[D], high[D];
  long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (int c = 0; c < D; ++c) low[c] = high[c] = (double)Y[c];
  for (long long i = first; i < n; i += (long long)gridDim.x * blockDim.x)
    for (int c = 0; c < D; ++c) {
      double y = (double)Y[i * D + c];
      if (y < low[c] || y != y) low[c] = y;
      if (y > high[c] || y != y) high[c] = y;
    }
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
  for (int c = 0; c < D; ++c) {
    for (int offset = 16; offset; offset /= 2) {
      double a = __shfl_down_sync(0xffffffff, low[c], offset);
      double b = __shfl_down_sync(0xffffffff, high[c], offset);
      if (a < low[c] || a != a) low[c] = a;
      if (b > high[c] || b != b) high[c] = b;
    }
    if (lane == 0) {
      shared[0][c][warp] = low[c];
      shared[1][c][warp] = high[c];
    }
  }
  __syncthreads();
  if (threadIdx.x >= D) return;
  int c = threadIdx.x;
  double a = shared[0][c][0], b = shared[1][c][0];
  for (int w = 1; w < n_warps; ++w) {
    double l = shared[0][c][w], h = shared[1][c][w];
    if (l < a || l != l) a = l;
    if (h > b || h != h) b = h;
  }
  out[(2 * blockIdx.x) * D + c] = a;
  out[(2 * blockIdx.x + 1) * D + c] = b;
}

// Adds the charges of points to the nodes around them, in units: a thread for a charge of a point.
// `totals` are the sums of the sizes of charges, one for each of a point; without `charges`, all
// are one, and their sum is n.
template <class Real, int D>
__global__ void spread(const Real *Y, const double *charges, const double *totals, int n,
                       int n_charges, double spacing, double f0, double f1, double f2, int m0,
                       int m1, int m2, unsigned long long *nodes) {
  Mesh mesh = {spacing, {f0, f1, f2}, {m0, m1, m2}};
  long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= (long long)n * n_charges) return;
  long long i = t / n_charges, which = t % n_charges, size = 1;
  double q = charges ? ldexp(charges[t], unit_bits(totals[which])) : ldexp(1.0, unit_bits(n));
  int cell[3] = {0, 0, 0};
  double u[D], w[D][NODES];
  locate<Real, D>(Y + i * D, mesh, cell, u);
  for (int c = 0; c < D; ++c) {
    spline(u[c], w[c]);
    size *= mesh.shape[c];
  }
  unsigned long long *own = nodes + which * size;
#pragma unroll
  for (int s = 0; s < (D > 2 ? NODES : 1); ++s)
#pragma unroll
    for (int r = 0; r < (D > 1 ? NODES : 1); ++r) {
      long long row = D > 2 ? cell[0] + s : 0;
      if constexpr (D > 1) row = row * mesh.shape[D - 2] + cell[D - 2] + r;
      row = row * mesh.shape[D - 1] + cell[D - 1];
      double factor = q;
      if constexpr (D > 2) factor *= w[0][s];
      if constexpr (D > 1) factor *= w[D - 2][r];
#pragma unroll
      for (int k = 0; k < NODES; ++k)
        atomicAdd(own + row + k, (unsigned long long)__double2ll_rn(factor * w[D - 1][k]));
    }
}

// Numbers of units become charges, in place; NaN if charges are not finite.
__global__ void from_units(double *nodes, const double *totals, double n, long long size,
                           long long n_nodes) {
  long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n_nodes) return;
  double total = totals ? totals[t / size] : n;
  double rest = total - total;  // zero, or NaN
  nodes[t] = ldexp((double)__double_as_longlong(nodes[t]), -unit_bits(total)) + rest;
}

// The potential at the points, without that of their own charges, and its gradient. A point has the
// potentials of several charges, which are added with the weights `left`; `right` are its own
// charges. LANES threads share them, neighbors in a warp. `near` is the potential of a unit charge
// at distances of zero to three nodes.
template <class Real, int D, bool SLOPES, int LANES>
__global__ void __launch_bounds__(THREADS, D > 2 ? 3 : 6)  // else three dimensions use 255 registers
gather(const Real *Y, const double *left, const double *right, int n,
                       int n_charges, double spacing, double f0, double f1, double f2, int m0,
                       int m1, int m2, const double *potential, const double *near,
                       double *values, double *slopes) {
  Mesh mesh = {spacing, {f0, f1, f2}, {m0, m1, m2}};
  long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  long long i = t / LANES, size = 1;
  int lane = t % LANES, cell[3] = {0, 0, 0};
  if (i >= n) return;
  double u[D], w[D][NODES], v[D][NODES];
  locate<Real, D>(Y + i * D, mesh, cell, u);
  for (int c = 0; c < D; ++c) {
    spline(u[c], w[c]);
    if constexpr (SLOPES) spline_slope(u[c], v[c]);
    size *= mesh.shape[c];
  }
  double value = 0, slope[D] = {}, own = 0;
  for (int which = lane; which < n_charges; which += LANES) {
    double l = left ? left[i * n_charges + which] : 1.0;
    double r = right ? right[i * n_charges + which] : 1.0;
    own += l * r;
    const double *phi = potential + which * size;
    double sum = 0, rise[D] = {};
#pragma unroll
    for (int s = 0; s < (D > 2 ? NODES : 1); ++s)
#pragma unroll
      for (int p = 0; p < (D > 1 ? NODES : 1); ++p) {
        long long row = D > 2 ? cell[0] + s : 0;
        if constexpr (D > 1) row = row * mesh.shape[D - 2] + cell[D - 2] + p;
        row = row * mesh.shape[D - 1] + cell[D - 1];
        double along = 0, steep = 0;
#pragma unroll
        for (int k = 0; k < NODES; ++k) {
          double at = __ldg(phi + row + k);
          along += w[D - 1][k] * at;
          if constexpr (SLOPES) steep += v[D - 1][k] * at;
        }
        double a = D > 2 ? w[0][s] : 1.0, b = D > 1 ? w[D > 1 ? D - 2 : 0][p] : 1.0;
        sum += a * b * along;
        if constexpr (SLOPES) {
          rise[D - 1] += a * b * steep;
          if constexpr (D > 1) rise[D - 2] += a * v[D - 2][p] * along;
          if constexpr (D > 2) rise[0] += v[0][s] * b * along;
        }
      }
    value += l * sum;
    for (int c = 0; c < D; ++c) slope[c] += l * rise[c];
  }
  if constexpr (LANES > 1)
    for (int offset = LANES / 2; offset; offset /= 2) {
      value += __shfl_down_sync(0xffffffff, value, offset);
      own += __shfl_down_sync(0xffffffff, own, offset);
      for (int c = 0; c < D; ++c) slope[c] += __shfl_down_sync(0xffffffff, slope[c], offset);
    }
  if (lane) return;
  // What the point itself has contributed; its slope is that by the first argument.
  double same[D][NODES], moved[D][NODES];
  for (int c = 0; c < D; ++c) {
    products(w[c], w[c], same[c]);
    if constexpr (SLOPES) products(w[c], v[c], moved[c]);
  }
#pragma unroll
  for (int s = 0; s < (D > 2 ? NODES : 1); ++s)
#pragma unroll
    for (int p = 0; p < (D > 1 ? NODES : 1); ++p) {
      double along = 0, steep = 0;
#pragma unroll
      for (int k = 0; k < NODES; ++k) {
        double at = own * __ldg(near + (s * (D > 1 ? NODES : 1) + p) * NODES + k);
        along += same[D - 1][k] * at;
        if constexpr (SLOPES) steep += moved[D - 1][k] * at;
      }
      double a = D > 2 ? same[0][s] : 1.0, b = D > 1 ? same[D > 1 ? D - 2 : 0][p] : 1.0;
      value -= a * b * along;
      if constexpr (SLOPES) {
        slope[D - 1] -= a * b * steep;
        if constexpr (D > 1) slope[D - 2] -= a * moved[D - 2][p] * along;
        if constexpr (D > 2) slope[0] -= moved[0][s] * b * along;
      }
    }
  values[i] = value;
  if constexpr (SLOPES)
    for (int c = 0; c < D; ++c) slopes[i * D + c] = slope[c] / mesh.spacing;
}
