// Nearest neighbors: selection from products, distances by subtraction, sorting of rows.

constexpr int NOBODY = 0x7fffffff;  // the index of an empty place

template <class Real>
__device__ __forceinline__ Real infinity() {
  return (Real)__int_as_float(0x7f800000);
}

template <class Real>
__device__ __forceinline__ bool before(Real a, int i, Real b, int j) {
  return a < b || (a == b && i < j);
}

// Sorts `size` entries, a power of two, by key, ties by index.
template <class Real>
__device__ void sort_shared(Real *keys, int *ids, int size) {
  for (int width = 2; width <= size; width *= 2)
    for (int stride = width / 2; stride; stride /= 2) {
      __syncthreads();
      for (int t = threadIdx.x; t < size / 2; t += blockDim.x) {
        int a = 2 * t - (t & (stride - 1)), b = a + stride;
        bool ascending = (a & width) == 0;
        if (before(keys[b], ids[b], keys[a], ids[a]) == ascending) {
          Real key = keys[a];
          keys[a] = keys[b];
          keys[b] = key;
          int id = ids[a];
          ids[a] = ids[b];
          ids[b] = id;
        }
      }
    }
  __syncthreads();
}

// Merges the columns of a block of products x·y into the k nearest found so far, a block of threads
// for a row. The entries nearer than the k-th are collected in shared memory, which is sorted when
// it is full: the order in which they come does not matter.
constexpr int EACH = 8;  // columns per thread and round

template <class Real>
__global__ void select(const Real *products, long long pitch, const Real *squares, int n_columns,
                       int first_column, const int *own_columns, int k, int capacity, Real *best,
                       int *best_ids) {
  extern __shared__ __align__(16) unsigned char memory[];
  Real *keys = (Real *)memory;
  int *ids = (int *)(keys + capacity);
  __shared__ int count;
  int row = blockIdx.x, own = own_columns ? own_columns[row] : -1;
  const Real *values = products + row * pitch;
  const Real infinite = infinity<Real>();
  for (int t = threadIdx.x; t < capacity; t += blockDim.x) {
    keys[t] = t < k ? best[(long long)row * k + t] : infinite;
    ids[t] = t < k ? best_ids[(long long)row * k + t] : NOBODY;
  }
  if (threadIdx.x == 0) count = k;
  __syncthreads();
  Real limit = keys[k - 1];
  int round = EACH * blockDim.x;
  for (int start = 0; start < n_columns; start += round) {
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      int column = start + e * blockDim.x + threadIdx.x;
      if (column < n_columns) {
        Real key = squares[column] - 2 * values[column];
        if (key < limit && first_column + column != own) {
          int place = atomicAdd(&count, 1);
          keys[place] = key;
          ids[place] = first_column + column;
        }
      }
    }
    __syncthreads();
    bool last = start + round >= n_columns;
    if (count + round > capacity || (last && count > k)) {
      for (int t = count + threadIdx.x; t < capacity; t += blockDim.x) {
        keys[t] = infinite;
        ids[t] = NOBODY;
      }
      // Few entries need not be sorted with all the empty places behind them.
      int size = 32;
      while (size < count) size *= 2;
      sort_shared(keys, ids, size);
      if (threadIdx.x == 0) count = k;
      __syncthreads();
      limit = keys[k - 1];
    }
    __syncthreads();
  }
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    best[(long long)row * k + t] = keys[t];
    best_ids[(long long)row * k + t] = ids[t];
  }
}

// The distances of rows of X to rows of Y, a warp for each pair: those of a table with k columns, or
// the pairs (rows, indices).
template <class Real>
__global__ void distances(const Real *X, const Real *Y, const int *rows, const int *indices,
                          long long n_pairs, int k, int m, double *out) {
  long long pair = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (pair >= n_pairs) return;
  const Real *x = X + (rows ? (long long)rows[pair] : pair / k) * m, *y = Y + (long long)indices[pair] * m;
  double square = 0;
  for (int c = lane; c < m; c += 32) {
    double step = (double)x[c] - (double)y[c];
    square += step * step;
  }
  for (int offset = 16; offset; offset /= 2)
    square += __shfl_down_sync(0xffffffff, square, offset);
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
  sort_shared(keys, ids, size);
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    values[first + t] = keys[t];
    indices[first + t] = ids[t];
  }
}
