// Nearest neighbors: selection from products, distances by subtraction, sorting of rows.

constexpr int NOBODY = 0x7fffffff;  // the index of an empty place
constexpr unsigned ALL = 0xffffffff;  // lanes of a warp

template <class Real>
__device__ __forceinline__ Real infinity() {
  return (Real)__int_as_float(0x7f800000);
}

template <class Real>
__device__ __forceinline__ bool before(Real a, int i, Real b, int j) {
  return a < b || (a == b && i < j);
}

template <bool WARP>
__device__ __forceinline__ void wait() {
  if constexpr (WARP)
    __syncwarp();
  else
    __syncthreads();
}

// Sorts `size` entries, a power of two, by key, ties by index. All threads of a block take
// part, or, with WARP, those of a warp.
template <bool WARP, class Real>
__device__ void sort_shared(Real *keys, int *ids, int size) {
  int first = WARP ? threadIdx.x % 32 : threadIdx.x, step = WARP ? 32 : blockDim.x;
  for (int width = 2; width <= size; width *= 2)
    for (int stride = width / 2; stride; stride /= 2) {
      wait<WARP>();
      for (int t = first; t < size / 2; t += step) {
        int a = 2 * t - (t & (stride - 1)), b = a + stride;
        bool ascending = (a & width) == 0;
        Real left = keys[a], right = keys[b];
        int i = ids[a], j = ids[b];
        if (before(right, j, left, i) == ascending) {
          keys[a] = right;
          keys[b] = left;
          ids[a] = j;
          ids[b] = i;
        }
      }
    }
  wait<WARP>();
}

// As many numbers as are read at once.
template <class Real>
struct alignas(16) Pack {
  static constexpr int SIZE = 16 / sizeof(Real);
  Real values[SIZE];
};

__device__ __forceinline__ Pack<float> load_once(const Pack<float> *place) {
  float4 v = __ldcs((const float4 *)place);
  return {v.x, v.y, v.z, v.w};
}

__device__ __forceinline__ Pack<double> load_once(const Pack<double> *place) {
  double2 v = __ldcs((const double2 *)place);
  return {v.x, v.y};
}

// The nearest entries of a row, in shared memory: the first k in order, then those that were found
// later. They are sorted when the memory is full, and only few are then nearer than the k-th.
template <class Real>
struct Nearest {
  Real *keys;
  int *ids;
  int k, capacity, count;
  Real limit;

  __device__ void merge() {
    int lane = threadIdx.x % 32, size = 32;
    while (size < count) size *= 2;
    for (int t = count + lane; t < size; t += 32) {
      keys[t] = infinity<Real>();
      ids[t] = NOBODY;
    }
    sort_shared<true>(keys, ids, size);
    count = k;
    limit = keys[k - 1];
  }

  // Adds the entries of the lanes that want it, in their order.
  __device__ void add(Real key, int id, bool wanted) {
    unsigned mask = __ballot_sync(ALL, wanted);
    if (!mask) return;
    if (count + __popc(mask) > capacity) {
      merge();
      wanted = wanted && key < limit;
      mask = __ballot_sync(ALL, wanted);
    }
    if (wanted) {
      int place = count + __popc(mask & ((1u << threadIdx.x % 32) - 1));
      keys[place] = key;
      ids[place] = id;
    }
    count += __popc(mask);
  }
};

// Merges the columns of a block of products x·y into the k nearest found so far, a warp for a row.
// The number of columns is a multiple of 32 * PACKS * SIZE; those that fill up have infinite squares.
// With `rows`, which are the rows of the nearest found so far, their keys exceed those of this block
// by `shifts`.
constexpr int PACKS = 4;  // which a lane reads at once
constexpr int WARPS = 4;  // at most, of a block

template <class Real>
__global__ void __launch_bounds__(32 * WARPS)
select(const Real *products, long long pitch, const Real *squares, int n_rows, int n_columns,
       int first_column, const int *own_columns, const int *rows, const Real *shifts, int k,
       int capacity, Real *best, int *best_ids) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int SIZE = Pack<Real>::SIZE;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
  long long row = (long long)blockIdx.x * n_warps + warp;
  if (row >= n_rows) return;
  Real *keys = (Real *)memory;
  int *ids = (int *)(keys + n_warps * capacity);
  Nearest<Real> found = {keys + warp * capacity, ids + warp * capacity, k, capacity, k};
  Real shift = rows ? shifts[row] : (Real)0;
  long long place = (rows ? (long long)rows[row] : row) * k;
  for (int t = lane; t < k; t += 32) {
    found.keys[t] = best[place + t] - shift;
    found.ids[t] = best_ids[place + t];
  }
  __syncwarp();
  found.limit = found.keys[k - 1];
  int own = own_columns ? own_columns[row] : -1;
  const Pack<Real> *values = (const Pack<Real> *)(products + row * pitch);
  const Pack<Real> *norms = (const Pack<Real> *)squares;
  for (int start = lane; start < n_columns / SIZE; start += 32 * PACKS) {
    Pack<Real> part[PACKS];
#pragma unroll
    for (int p = 0; p < PACKS; ++p) part[p] = load_once(values + start + 32 * p);
    bool any = false;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      Pack<Real> norm = norms[start + 32 * p];
#pragma unroll
      for (int e = 0; e < SIZE; ++e) {
        Real key = norm.values[e] - 2 * part[p].values[e];
        part[p].values[e] = key;
        any |= key < found.limit;
      }
    }
    if (!__any_sync(ALL, any)) continue;
#pragma unroll
    for (int p = 0; p < PACKS; ++p)
#pragma unroll
      for (int e = 0; e < SIZE; ++e) {
        Real key = part[p].values[e];
        int column = first_column + (start + 32 * p) * SIZE + e;
        found.add(key, column, key < found.limit && column != own);
      }
  }
  __syncwarp();
  if (found.count > k) found.merge();
  for (int t = lane; t < k; t += 32) {
    best[place + t] = found.keys[t] + shift;
    best_ids[place + t] = found.ids[t];
  }
}

template <class Real>
__device__ __forceinline__ double squared_step(Real x, Real y) {
  double step = (double)x - (double)y;
  return step * step;
}

// The distances of rows of X to rows of Y, a warp for each pair: those of a table with k columns, or
// the pairs (rows, indices). PACKED: rows have whole packs.
template <class Real, bool PACKED>
__global__ void distances(const Real *X, const Real *Y, const int *rows, const int *indices,
                          long long n_pairs, int k, int m, double *out) {
  long long pair = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (pair >= n_pairs) return;
  const Real *x = X + (rows ? (long long)rows[pair] : pair / k) * m, *y = Y + (long long)indices[pair] * m;
  double square = 0;
  if constexpr (PACKED) {
    constexpr int SIZE = Pack<Real>::SIZE;
#pragma unroll 2
    for (int c = lane; c < m / SIZE; c += 32) {
      Pack<Real> a = ((const Pack<Real> *)x)[c], b = ((const Pack<Real> *)y)[c];
#pragma unroll
      for (int e = 0; e < SIZE; ++e) square += squared_step(a.values[e], b.values[e]);
    }
  } else {
    for (int c = lane; c < m; c += 32) square += squared_step(x[c], y[c]);
  }
  for (int offset = 16; offset; offset /= 2)
    square += __shfl_down_sync(ALL, square, offset);
  if (lane == 0) out[pair] = sqrt(square);
}

// Sorts the rows of a table, a block of threads for a row.
template <class Real>
__global__ void sort_rows(int *indices, Real *values, int k, int size) {
  extern __shared__ __align__(16) unsigned char memory[];
  Real *keys = (Real *)memory;
  int *ids = (int *)(keys + size);
  long long first = (long long)blockIdx.x * k;
  for (int t = threadIdx.x; t < size; t += blockDim.x) {
    keys[t] = t < k ? values[first + t] : infinity<Real>();
    ids[t] = t < k ? indices[first + t] : NOBODY;
  }
  sort_shared<false>(keys, ids, size);
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    values[first + t] = keys[t];
    indices[first + t] = ids[t];
  }
}
