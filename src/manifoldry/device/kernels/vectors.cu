// Arrays as vectors: inner products, linear combinations, and points around their mean. All sums are
// in double precision, in an order that depends only on the sizes.

constexpr int THREADS = 256;  // of a block
constexpr int MOST = 12;      // arrays, or pairs of them, of a launch
constexpr int COLUMNS = 32;   // up to which `subtract_means` has space

// The sum over the threads of a block, in its first thread.
__device__ __forceinline__ double block_sum(double value) {
  __shared__ double of_warps[THREADS / 32];
  for (int offset = 16; offset; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  __syncthreads();  // the last sum has been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < THREADS / 32; ++w) value += of_warps[w];
  return value;
}

__device__ __forceinline__ double entry(const void *array, bool is_double, long long i) {
  return is_double ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

struct Pointers {
  const void *at[MOST];
};

// Parts of Σ aᵢ·bᵢ: blockIdx.y is the pair. Bits 2·pair and 2·pair + 1 of `doubles` are the types.
__global__ void inner_products(
    const void *a0, const void *a1, const void *a2, const void *a3, const void *a4, const void *a5,
    const void *a6, const void *a7, const void *a8, const void *a9, const void *a10,
    const void *a11, const void *b0, const void *b1, const void *b2, const void *b3,
    const void *b4, const void *b5, const void *b6, const void *b7, const void *b8,
    const void *b9, const void *b10, const void *b11, int doubles, long long size, double *parts) {
  const Pointers a = {{a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11}};
  const Pointers b = {{b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11}};
  int pair = blockIdx.y;
  bool first = doubles >> (2 * pair) & 1, second = doubles >> (2 * pair + 1) & 1;
  double total = 0;
  for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < size;
       i += (long long)gridDim.x * THREADS)
    total += entry(a.at[pair], first, i) * entry(b.at[pair], second, i);
  total = block_sum(total);
  if (threadIdx.x == 0) parts[(long long)pair * gridDim.x + blockIdx.x] = total;
}

// Sums of rows, a block for each.
__global__ void row_sums(const double *rows, int n_columns, double *out) {
  double total = 0;
  for (int j = threadIdx.x; j < n_columns; j += THREADS)
    total += rows[(long long)blockIdx.x * n_columns + j];
  total = block_sum(total);
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// Σ cₜ·Aₜ of `count` arrays.
template <class Real>
__global__ void combination(
    double c0, double c1, double c2, double c3, double c4, double c5, double c6, double c7,
    double c8, double c9, double c10, double c11, const void *a0, const void *a1, const void *a2,
    const void *a3, const void *a4, const void *a5, const void *a6, const void *a7, const void *a8,
    const void *a9, const void *a10, const void *a11, int count, long long size, Real *out) {
  const double c[MOST] = {c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11};
  const Pointers a = {{a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11}};
  long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
  if (i >= size) return;
  double total = 0;
#pragma unroll
  for (int t = 0; t < MOST; ++t)
    if (t < count) total += c[t] * (double)((const Real *)a.at[t])[i];
  out[i] = (Real)total;
}

// A step with momentum; see `Primitives.momentum_step`.
template <class Real>
__global__ void momentum_step(const Real *Y, const Real *Z, const Real *V, const Real *gains,
                              long long size, Real increment, Real decay, Real least,
                              Real momentum, Real rate, Real *to, Real *velocity,
                              Real *new_gains) {
  long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
  if (i >= size) return;
  Real gain = V[i] * Z[i] < 0 ? gains[i] + increment : gains[i] * decay;
  gain = gain < least ? least : gain;
  Real step = momentum * V[i] - rate * gain * Z[i];
  new_gains[i] = gain;
  velocity[i] = step;
  to[i] = Y[i] + step;
}

// Sums of the columns of some rows, one after the other: (gridDim.x, d).
template <class Real>
__global__ void column_parts(const Real *Y, int n, int d, double *parts) {
  for (int c = 0; c < d; ++c) {
    double total = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
      total += (double)Y[(long long)i * d + c];
    total = block_sum(total);
    if (threadIdx.x == 0) parts[blockIdx.x * d + c] = total;
  }
}

// The points minus their mean, from the sums of `n_parts` blocks.
template <class Real, class Result>
__global__ void subtract_means(const Real *Y, const double *parts, int n_parts, int n, int d,
                               Result *out) {
  __shared__ double means[COLUMNS];
  for (int c = 0; c < d; ++c) {
    double total = 0;
    for (int p = threadIdx.x; p < n_parts; p += THREADS) total += parts[p * d + c];
    total = block_sum(total);
    if (threadIdx.x == 0) means[c] = total / n;
  }
  __syncthreads();
  long long size = (long long)n * d;
  for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < size;
       i += (long long)gridDim.x * THREADS)
    out[i] = (Result)((double)Y[i] - means[i % d]);
}
