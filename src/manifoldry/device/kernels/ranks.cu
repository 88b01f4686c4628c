// Ranks of the entries of rows: the smallest entries, and the ranks of some of them.

constexpr int NOBODY = 0x7fffffff;  // the index of an empty place
constexpr int EACH = 4;             // entries per thread and round of `smallest`

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }

__device__ __forceinline__ bool before(double a, int i, double b, int j) {
  return a < b || (a == b && i < j);
}

// Sorts `size` entries, a power of two, by key, ties by index.
__device__ void sort_shared(double *keys, int *ids, int size) {
  for (int width = 2; width <= size; width *= 2)
    for (int stride = width / 2; stride; stride /= 2) {
      __syncthreads();
      for (int t = threadIdx.x; t < size / 2; t += blockDim.x) {
        int a = 2 * t - (t & (stride - 1)), b = a + stride;
        double left = keys[a], right = keys[b];
        int i = ids[a], j = ids[b];
        if (before(right, j, left, i) == ((a & width) == 0)) {
          keys[a] = right, keys[b] = left;
          ids[a] = j, ids[b] = i;
        }
      }
    }
  __syncthreads();
}

// The columns of the k smallest entries of each row, a block of threads for a row. The entries below
// the k-th smallest so far are collected in shared memory, which is sorted when it is full.
__global__ void smallest(const double *table, int n, int k, int capacity, int *out) {
  extern __shared__ __align__(16) unsigned char memory[];
  double *keys = (double *)memory;
  int *ids = (int *)(keys + capacity);
  __shared__ int count;
  const double *values = table + (long long)blockIdx.x * n;
  for (int t = threadIdx.x; t < capacity; t += blockDim.x) {
    keys[t] = infinity();
    ids[t] = NOBODY;
  }
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  double limit = infinity();
  int limit_id = NOBODY, round = EACH * blockDim.x;
  for (int start = 0; start < n; start += round) {
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      int column = start + e * blockDim.x + threadIdx.x;
      if (column < n) {
        double key = values[column];
        if (before(key, column, limit, limit_id)) {
          int place = atomicAdd(&count, 1);
          keys[place] = key;
          ids[place] = column;
        }
      }
    }
    __syncthreads();
    int found = count;
    if (found + round > capacity || start + round >= n) {
      int size = 2;
      while (size < found) size *= 2;
      for (int t = found + threadIdx.x; t < size; t += blockDim.x) {
        keys[t] = infinity();
        ids[t] = NOBODY;
      }
      sort_shared(keys, ids, size);
      if (found >= k) limit = keys[k - 1], limit_id = ids[k - 1];
      if (threadIdx.x == 0) count = min(found, k);
    }
    __syncthreads();
  }
  for (int t = threadIdx.x; t < k; t += blockDim.x) out[(long long)blockIdx.x * k + t] = ids[t];
}

// The number of sorted limits that come before an entry, or are that entry.
__device__ __forceinline__ int place_of(double key, int id, const double *limits, const int *ids,
                                        int k) {
  int low = 0, high = k;
  while (low < high) {
    int middle = (low + high) / 2;
    if (before(key, id, limits[middle], ids[middle]))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Ranks, from 1, of k entries of each row, ties by column, a block of threads for a row. `size` is a
// power of two, at least k.
__global__ void ranks(const double *table, int n, const int *columns, int k, int size, int *out) {
  extern __shared__ __align__(16) unsigned char memory[];
  double *limits = (double *)memory;
  int *ids = (int *)(limits + size), *counts = ids + size;
  const double *values = table + (long long)blockIdx.x * n;
  columns += (long long)blockIdx.x * k;
  out += (long long)blockIdx.x * k;
  for (int t = threadIdx.x; t < size; t += blockDim.x) {
    ids[t] = t < k ? columns[t] : NOBODY;
    limits[t] = t < k ? values[columns[t]] : infinity();
    counts[t] = 0;
  }
  sort_shared(limits, ids, size);
  double last = limits[k - 1];
  for (int column = threadIdx.x; column < n; column += blockDim.x) {
    double key = values[column];
    if (key > last) continue;
    int place = place_of(key, column, limits, ids, k);
    if (place < k) atomicAdd(&counts[place], 1);
  }
  __syncthreads();
  // An entry is before its own limit, and before all later ones.
  if (threadIdx.x == 0)
    for (int t = 1; t < k; ++t) counts[t] += counts[t - 1];
  __syncthreads();
  for (int t = threadIdx.x; t < k; t += blockDim.x)
    out[t] = counts[place_of(values[columns[t]], columns[t], limits, ids, k) - 1] + 1;
}
