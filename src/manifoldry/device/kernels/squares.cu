// Squared distances of points with few coordinates, by subtraction, in double precision.

__device__ __forceinline__ double lesser(double a, double b) { return b < a ? b : a; }

// All pairs: a thread for a column, and blocks for rows that are `gridDim.y` apart.
template <int D>
__global__ void squared_distances(const double *X, const double *Y, int n, int m, double *out) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= m) return;
  double y[D];
  for (int c = 0; c < D; ++c) y[c] = Y[(long long)j * D + c];
  for (int i = blockIdx.y; i < n; i += gridDim.y) {
    double square = 0;
    for (int c = 0; c < D; ++c) {
      double step = X[(long long)i * D + c] - y[c];
      square += step * step;
    }
    out[(long long)i * m + j] = square;
  }
}

// The smallest of each row: a block of 256 threads for a row.
template <int D>
__global__ void nearest_squares(const double *X, const double *Y, int m, double *out) {
  __shared__ double least[8];
  long long i = blockIdx.x;
  double x[D], smallest = __longlong_as_double(0x7ff0000000000000LL);  // infinity
  for (int c = 0; c < D; ++c) x[c] = X[i * D + c];
  for (int j = threadIdx.x; j < m; j += blockDim.x) {
    double square = 0;
    for (int c = 0; c < D; ++c) {
      double step = x[c] - Y[(long long)j * D + c];
      square += step * step;
    }
    smallest = lesser(smallest, square);
  }
  for (int offset = 16; offset; offset /= 2)
    smallest = lesser(smallest, __shfl_down_sync(0xffffffff, smallest, offset));
  if (threadIdx.x % 32 == 0) least[threadIdx.x / 32] = smallest;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) smallest = lesser(smallest, least[w]);
    out[i] = smallest;
  }
}
