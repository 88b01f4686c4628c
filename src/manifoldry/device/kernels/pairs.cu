// Sums of a kernel over pairs of points in up to three dimensions.
//
// The points are divided into tiles, and each pair of tiles is processed once, by one block of
// threads, which adds to the sums of both. A lane keeps ROWS points of one tile in registers, while
// the points of the other tile go round from lane to lane, together with their sums. The sums over a
// tile are in single precision. A second kernel adds them in double precision and in a fixed order.

constexpr int WARPS = 2, ROWS = 8, TILE = 32 * WARPS * ROWS;

struct Checked {
  static constexpr bool check = true;
};
struct Unchecked {
  static constexpr bool check = false;
};

struct Gaussian {
  static constexpr bool gaussian = true, needs_power = false;
};
struct Cauchy {  // Student's kernel with one degree of freedom
  static constexpr bool gaussian = false, needs_power = false;
};
struct Student {
  static constexpr bool gaussian = false, needs_power = true;
};

// Points are scaled so that the kernel is 2^-base with base = D, or base^-power with base = 1 + D.
// M is the factor of the moments.
template <class Kernel, int ORDER>
__device__ __forceinline__ void evaluate(float base, float power, float &K, float &M) {
  if constexpr (Kernel::gaussian) {
    K = exp2f(-base);
    M = K;
  } else {
    float inverse = __fdividef(1.0f, base);
    K = Kernel::needs_power ? exp2f(power * __log2f(inverse)) : inverse;
    M = K * inverse;
    if constexpr (ORDER == 2) M *= inverse;
  }
}

// A point as four floats: scaled coordinates and weight. `low` has what single precision leaves out
// of the coordinates, so that differences of points are accurate even if they are close together.
template <class Real, int D>
__global__ void pack(const Real *Y, const Real *weights, int n, double scale, float4 *high,
                     float4 *low) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float h[3] = {0, 0, 0}, l[3] = {0, 0, 0};
  for (int c = 0; c < D; ++c) {
    double y = scale * (double)Y[i * D + c];
    h[c] = (float)y;
    l[c] = (float)(y - (double)h[c]);
  }
  high[i] = make_float4(h[0], h[1], h[2], weights ? (float)weights[i] : 1.0f);
  if (low) low[i] = make_float4(l[0], l[1], l[2], 0.0f);
}

// The step from one point to another; returns the base.
template <class Kernel, int D, bool SPLIT>
__device__ __forceinline__ float step_between(float4 a, float4 a_low, float4 b, float4 b_low,
                                              float (&step)[D]) {
  step[0] = a.x - b.x;
  if constexpr (D > 1) step[1] = a.y - b.y;
  if constexpr (D > 2) step[2] = a.z - b.z;
  if constexpr (SPLIT) {
    step[0] += a_low.x - b_low.x;
    if constexpr (D > 1) step[1] += a_low.y - b_low.y;
    if constexpr (D > 2) step[2] += a_low.z - b_low.z;
  }
  float base = Kernel::gaussian ? step[0] * step[0] : fmaf(step[0], step[0], 1.0f);
#pragma unroll
  for (int c = 1; c < D; ++c) base = fmaf(step[c], step[c], base);
  return base;
}

__device__ __forceinline__ float next(float value) {  // of the following lane, in a circle
  return __shfl_sync(0xffffffff, value, (threadIdx.x + 1) & 31);
}

template <int D, bool SPLIT, bool WEIGHTED>
__device__ __forceinline__ void go_round(float4 &point, float4 &low) {
  point.x = next(point.x);
  if constexpr (D > 1) point.y = next(point.y);
  if constexpr (D > 2) point.z = next(point.z);
  if constexpr (WEIGHTED) point.w = next(point.w);
  if constexpr (SPLIT) {
    low.x = next(low.x);
    if constexpr (D > 1) low.y = next(low.y);
    if constexpr (D > 2) low.z = next(low.z);
  }
}

// One block for the tiles I = blockIdx.x and J = first_tile + blockIdx.y, if I <= J. The sums of tile
// I are written to row_parts (tiles J, 1 + D, n), those of tile J to column_parts (tiles I, 1 + D,
// points of all tiles J). A tile with itself has row_parts only.
template <class Kernel, int D, int ORDER, bool SPLIT, bool WEIGHTED>
__global__ void __launch_bounds__(32 * WARPS)
pair_sums(const float4 *high, const float4 *low, int n, int first_tile, float power,
          float *row_parts, float *column_parts) {
  __shared__ float columns[WARPS][1 + D][TILE];
  int I = blockIdx.x, J = first_tile + blockIdx.y;
  if (I > J) return;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float4 zero = make_float4(0, 0, 0, 0);
  float4 y[ROWS], z[ROWS];
  float total[ROWS][1 + D];
  int first = I * TILE + warp * 32 * ROWS + lane;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    int i = first + 32 * r;
    y[r] = i < n ? high[i] : zero;
    z[r] = SPLIT && i < n ? low[i] : zero;
#pragma unroll
    for (int c = 0; c <= D; ++c) total[r][c] = 0;
  }
  // Pairs that do not count: of a point with itself, and those beyond the last point.
  bool checked = I == J || (J + 1) * TILE > n;
  for (int start = 0; start < TILE; start += 32) {
    int j = J * TILE + start + lane;
    float4 other = j < n ? high[j] : zero, rest = SPLIT && j < n ? low[j] : zero;
    float sums[1 + D];
#pragma unroll
    for (int c = 0; c <= D; ++c) sums[c] = 0;
    auto process = [&](auto pairs, int turn) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        float K, M, step[D];
        float base = step_between<Kernel, D, SPLIT>(y[r], z[r], other, rest, step);
        evaluate<Kernel, ORDER>(base, power, K, M);
        if constexpr (decltype(pairs)::check) {
          int i = first + 32 * r, column = J * TILE + start + ((lane + turn) & 31);
          if (i == column || i >= n || column >= n) K = M = 0.0f;
        }
        float to_row = WEIGHTED ? other.w * M : M, to_column = WEIGHTED ? y[r].w * M : M;
        total[r][0] = WEIGHTED ? fmaf(other.w, K, total[r][0]) : total[r][0] + K;
        sums[0] = WEIGHTED ? fmaf(y[r].w, K, sums[0]) : sums[0] + K;
#pragma unroll
        for (int c = 0; c < D; ++c) {
          float moment = ORDER == 1 ? step[c] : step[c] * step[c];
          total[r][1 + c] = fmaf(to_row, moment, total[r][1 + c]);
          sums[1 + c] = fmaf(ORDER == 1 ? -to_column : to_column, moment, sums[1 + c]);
        }
      }
      go_round<D, SPLIT, WEIGHTED>(other, rest);
#pragma unroll
      for (int c = 0; c <= D; ++c) sums[c] = next(sums[c]);
    };
    if (checked)
      for (int turn = 0; turn < 32; ++turn) process(Checked(), turn);
    else
#pragma unroll 2
      for (int turn = 0; turn < 32; ++turn) process(Unchecked(), turn);
#pragma unroll
    for (int c = 0; c <= D; ++c) columns[warp][c][start + lane] = sums[c];
  }
  long long n_columns = (long long)gridDim.y * TILE;
#pragma unroll
  for (int c = 0; c <= D; ++c)
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      if (first + 32 * r < n)
        row_parts[((long long)blockIdx.y * (1 + D) + c) * n + first + 32 * r] = total[r][c];
  if (I == J) return;
  __syncthreads();
  for (int t = threadIdx.x; t < TILE; t += 32 * WARPS)
    for (int c = 0; c <= D; ++c) {
      float sum = 0;
      for (int w = 0; w < WARPS; ++w) sum += columns[w][c][t];
      column_parts[((long long)I * (1 + D) + c) * n_columns + blockIdx.y * TILE + t] = sum;
    }
}

// Adds the sums of the tiles, in order, to `totals`, (1 + D, n): those with the tiles J from
// first_tile on, and, for points in these, those with the tiles before.
template <int D>
__global__ void add_parts(const float *row_parts, const float *column_parts, int n, int first_tile,
                          int n_tiles, double *totals) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y;
  if (i >= n) return;
  int own = i / TILE;
  double total = totals[(long long)c * n + i];
  if (own >= first_tile && own < first_tile + n_tiles) {
    long long n_columns = (long long)n_tiles * TILE, column = i - (long long)first_tile * TILE;
    for (int I = 0; I < own; ++I)
      total += column_parts[((long long)I * (1 + D) + c) * n_columns + column];
  }
  for (int J = max(own, first_tile); J < first_tile + n_tiles; ++J)
    total += row_parts[((long long)(J - first_tile) * (1 + D) + c) * n + i];
  totals[(long long)c * n + i] = total;
}

// The same sums of the points from `first_row` on, with weights of pairs: W has a row for each point
// and a column for each of the points whose sums are computed, at a distance of `pitch`. A thread for
// one of these points and a part of all others.
constexpr int GROUP = 64;  // pairs that are added in single precision

template <class Kernel, int D, int ORDER, bool SPLIT, class Weight>
__global__ void weighted_pair_sums(const float4 *high, const float4 *low, const Weight *W,
                                   long long pitch, int n, int first_row, int n_rows, int chunk,
                                   float power, double *parts) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, i = first_row + column;
  if (column >= n_rows) return;
  const float4 zero = make_float4(0, 0, 0, 0);
  float4 y = high[i], z = SPLIT ? low[i] : zero;
  double total[1 + D] = {};
  int start = blockIdx.y * chunk, stop = min(n, start + chunk);
  for (int group = start; group < stop; group += GROUP) {
    float part[1 + D] = {};
#pragma unroll 4
    for (int j = group; j < min(group + GROUP, stop); ++j) {
      float K, M, step[D];
      float base = step_between<Kernel, D, SPLIT>(y, z, high[j], SPLIT ? low[j] : zero, step);
      evaluate<Kernel, ORDER>(base, power, K, M);
      float w = i == j ? 0.0f : fmaxf((float)W[j * pitch + column], 0.0f);
      part[0] = fmaf(w, K, part[0]);
      M *= w;
#pragma unroll
      for (int c = 0; c < D; ++c)
        part[1 + c] = fmaf(ORDER == 1 ? M : M * step[c], step[c], part[1 + c]);
    }
    for (int c = 0; c <= D; ++c) total[c] += part[c];
  }
  for (int c = 0; c <= D; ++c)
    parts[((long long)blockIdx.y * (1 + D) + c) * n_rows + column] = total[c];
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
