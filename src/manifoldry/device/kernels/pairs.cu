// Sums of a kernel over pairs of points in up to three dimensions.
//
// Each thread keeps ROWS points in registers and reads all others, a tile at a time, from shared
// memory. The pairs of a tile are added in single precision, tiles in double. The others are split
// among several blocks, whose sums a second kernel adds in a fixed order.

constexpr int THREADS = 128, ROWS = 4, TILE = 256;

struct Gaussian {
  static constexpr bool gaussian = true, needs_power = false;
};
struct Cauchy {  // Student's kernel with one degree of freedom
  static constexpr bool gaussian = false, needs_power = false;
};
struct Student {
  static constexpr bool gaussian = false, needs_power = true;
};

// The kernel at a squared distance times scale, and the factor of the moments.
template <class Kernel, int ORDER>
__device__ __forceinline__ void evaluate(float D, float scale, float power, float &K, float &M) {
  if constexpr (Kernel::gaussian) {
    K = exp2f(-D * scale);  // scale = 1 / log 2
    M = K;
  } else {
    float inverse = __fdividef(1.0f, fmaf(scale, D, 1.0f));
    K = Kernel::needs_power ? exp2f(power * __log2f(inverse)) : inverse;
    M = K * inverse;
    if constexpr (ORDER == 2) M *= inverse;
  }
}

// A point as four floats: coordinates and weight. `low` has what single precision leaves out of
// the coordinates, so that differences of points are accurate even if they are close together.
template <class Real, int D>
__global__ void pack(const Real *Y, const Real *weights, int n, float4 *high, float4 *low) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float h[3] = {0, 0, 0}, l[3] = {0, 0, 0};
  for (int c = 0; c < D; ++c) {
    h[c] = (float)Y[i * D + c];
    l[c] = (float)(Y[i * D + c] - (Real)h[c]);
  }
  high[i] = make_float4(h[0], h[1], h[2], weights ? (float)weights[i] : 1.0f);
  if (low) low[i] = make_float4(l[0], l[1], l[2], 0.0f);
}

// WEIGHTED: 0 for weights of points, 1 for a symmetric matrix of weights (n, n).
template <class Kernel, int D, int ORDER, bool SPLIT, int WEIGHTED, class Weight>
__global__ void __launch_bounds__(THREADS)
pair_sums(const float4 *high, const float4 *low, const Weight *W, int n, int chunk, float scale,
          float power, double *parts) {
  __shared__ float4 tile[TILE];
  __shared__ float4 rest[SPLIT ? TILE : 1];
  float4 y[ROWS], z[ROWS];
  double total[ROWS][1 + D];
  int rows[ROWS];
  int first = blockIdx.x * THREADS * ROWS;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    rows[r] = first + r * THREADS + threadIdx.x;
    int i = min(rows[r], n - 1);
    y[r] = high[i];
    if constexpr (SPLIT) z[r] = low[i];
    for (int c = 0; c <= D; ++c) total[r][c] = 0;
  }
  int stop = min(n, (int)(blockIdx.y + 1) * chunk);
  for (int start = blockIdx.y * chunk; start < stop; start += TILE) {
    __syncthreads();
    for (int t = threadIdx.x; t < TILE; t += THREADS) {
      int j = start + t;
      tile[t] = j < stop ? high[j] : make_float4(0, 0, 0, 0);
      if constexpr (SPLIT) rest[t] = j < stop ? low[j] : make_float4(0, 0, 0, 0);
    }
    __syncthreads();
    // Only tiles that contain the points of this block have pairs of a point with itself.
    bool overlap = start < first + THREADS * ROWS && first < start + TILE;
    int count = min(TILE, stop - start);
    float part[ROWS][1 + D];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      for (int c = 0; c <= D; ++c) part[r][c] = 0;
#pragma unroll 4
    for (int t = 0; t < count; ++t) {
      float4 other = tile[t];
      float4 other_rest = SPLIT ? rest[t] : make_float4(0, 0, 0, 0);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        float step[3];
        step[0] = y[r].x - other.x;
        if constexpr (D > 1) step[1] = y[r].y - other.y;
        if constexpr (D > 2) step[2] = y[r].z - other.z;
        if constexpr (SPLIT) {
          step[0] += z[r].x - other_rest.x;
          if constexpr (D > 1) step[1] += z[r].y - other_rest.y;
          if constexpr (D > 2) step[2] += z[r].z - other_rest.z;
        }
        float square = step[0] * step[0];
        if constexpr (D > 1) square = fmaf(step[1], step[1], square);
        if constexpr (D > 2) square = fmaf(step[2], step[2], square);
        float K, M, w = other.w;
        if constexpr (WEIGHTED == 1)
          w = rows[r] < n ? (float)W[(long long)(start + t) * n + rows[r]] : 0.0f;
        evaluate<Kernel, ORDER>(square, scale, power, K, M);
        if (overlap && start + t == rows[r]) K = M = 0.0f;
        part[r][0] = fmaf(w, K, part[r][0]);
        M *= w;
#pragma unroll
        for (int c = 0; c < D; ++c)
          part[r][1 + c] = fmaf(ORDER == 1 ? M : M * step[c], step[c], part[r][1 + c]);
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      for (int c = 0; c <= D; ++c) total[r][c] += part[r][c];
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (rows[r] < n)
      for (int c = 0; c <= D; ++c)
        parts[((long long)blockIdx.y * (1 + D) + c) * n + rows[r]] = total[r][c];
}

// Adds the parts of the blocks, in order.
template <class Real, int D>
__global__ void add_parts(const double *parts, int n, int n_parts, double *sums, Real *moments) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int c = 0; c <= D; ++c) {
    double total = 0;
    for (int p = 0; p < n_parts; ++p) total += parts[((long long)p * (1 + D) + c) * n + i];
    if (c == 0)
      sums[i] = total;
    else
      moments[i * D + c - 1] = (Real)total;
  }
}

__device__ __forceinline__ double add_lanes(double value) {
  for (int offset = 16; offset; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}

// Sums over the edges of each point, a warp for a point: log b, steps over b, and one over b.
template <class Real, int D>
__global__ void edge_sums(const Real *Y, const long long *indptr, const int *indices,
                          const Real *data, int n, Real rate, double *costs, Real *force,
                          Real *degree) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  Real y[D];
  for (int c = 0; c < D; ++c) y[c] = Y[i * D + c];
  Real f[D] = {}, g = 0, cost = 0;
  for (long long e = indptr[i] + lane; e < indptr[i + 1]; e += 32) {
    int j = indices[e];
    Real step[D], square = 0;
    for (int c = 0; c < D; ++c) {
      step[c] = y[c] - Y[j * D + c];
      square += step[c] * step[c];
    }
    Real w = data[e], t = w / (1 + rate * square);
    cost += w * log1p(rate * square);
    g += t;
    for (int c = 0; c < D; ++c) f[c] += t * step[c];
  }
  double total = add_lanes((double)cost);
  double g_total = add_lanes((double)g);
  double f_total[D];
  for (int c = 0; c < D; ++c) f_total[c] = add_lanes((double)f[c]);
  if (lane) return;
  costs[i] = total;
  degree[i] = (Real)g_total;
  for (int c = 0; c < D; ++c) force[i * D + c] = (Real)f_total[c];
}

// Sums over fixed points at positions, with gradient and Hessian, in double precision: a block for
// a position. A row of `out` has the sum, D entries of the gradient and D × D of the Hessian.
template <bool GAUSSIAN, int D>
__global__ void position_sums(const double *Z, const double *Y, const double *least,
                              const double *weights, int n, double rate, double power,
                              double *out) {
  constexpr int SIZE = 1 + D + D * D;
  __shared__ double shared[32][SIZE];
  int p = blockIdx.x;
  double z[D], total[SIZE] = {};
  for (int c = 0; c < D; ++c) z[c] = Z[p * D + c];
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double step[D], square = 0;
    for (int c = 0; c < D; ++c) {
      step[c] = z[c] - Y[j * D + c];
      square += step[c] * step[c];
    }
    double K, first, second;
    if constexpr (GAUSSIAN) {
      K = exp(least[p] - square);
      first = second = K;
    } else {
      double base = 1 + rate * square;
      K = exp(least[p] - power * log1p(rate * square));
      first = rate * power * K / base;
      second = first * rate * (power + 1) / base;
    }
    double w = weights ? weights[(long long)p * n + j] : 1.0;
    total[0] += w * K;
    for (int c = 0; c < D; ++c) {
      total[1 + c] -= 2 * w * first * step[c];
      for (int e = 0; e < D; ++e)
        total[1 + D + c * D + e] +=
            w * (4 * second * step[c] * step[e] - (c == e ? 2 * first : 0.0));
    }
  }
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int s = 0; s < SIZE; ++s) {
    double sum = add_lanes(total[s]);
    if (lane == 0) shared[warp][s] = sum;
  }
  __syncthreads();
  if (threadIdx.x < SIZE) {
    double sum = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += shared[w][threadIdx.x];
    out[(long long)p * SIZE + threadIdx.x] = sum;
  }
}
