// Factorizations of many small matrices, by one-sided Jacobi rotations: a warp for a matrix.

constexpr int WARP = 32;
constexpr int MOST_SWEEPS = 40;      // six to ten are usual
constexpr double ORTHOGONAL = 2e-15;  // cosine of the angle between columns that counts as zero

// The sum over a warp, with the same bits in every lane.
__device__ __forceinline__ double warp_sum(double value) {
  for (int offset = WARP / 2; offset; offset /= 2)
    value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

// A power of two near the largest of `size` entries, so that squares of their quotients do not
// underflow.
__device__ double unit_of(const double *A, int size, int lane) {
  double largest = 0;
  for (int t = lane; t < size; t += WARP) largest = fmax(largest, fabs(A[t]));
  for (int offset = WARP / 2; offset; offset /= 2)
    largest = fmax(largest, __shfl_xor_sync(0xffffffff, largest, offset));
  return largest > 0 ? exp2(floor(log2(largest))) : 1;
}

// Rotates two columns of length n: c·a − s·b and s·a + c·b.
__device__ __forceinline__ void rotate(double *a, double *b, int n, double c, double s, int lane) {
  for (int r = lane; r < n; r += WARP) {
    double x = a[r], y = b[r];
    a[r] = c * x - s * y;
    b[r] = s * x + c * y;
  }
}

// Makes the columns of B orthogonal; V becomes the product of the rotations if it is not null.
// Small columns are as accurate as their size allows, since nothing is squared but for the angles.
__device__ void orthogonalize(double *B, double *V, int rows, int columns, int lane) {
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < MOST_SWEEPS; ++sweep) {
    rotated = false;
    for (int p = 0; p < columns - 1; ++p)
      for (int q = p + 1; q < columns; ++q) {
        double *a = B + p * rows, *b = B + q * rows;
        double aa = 0, bb = 0, ab = 0;
        for (int r = lane; r < rows; r += WARP) {
          aa += a[r] * a[r];
          bb += b[r] * b[r];
          ab += a[r] * b[r];
        }
        aa = warp_sum(aa);
        bb = warp_sum(bb);
        ab = warp_sum(ab);
        if (!(fabs(ab) > ORTHOGONAL * sqrt(aa) * sqrt(bb))) continue;  // or not a number
        double zeta = (bb - aa) / (2 * ab);
        double t = copysign(1.0, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
        double c = 1 / sqrt(1 + t * t), s = c * t;
        rotate(a, b, rows, c, s, lane);
        if (V) rotate(V + p * columns, V + q * columns, columns, c, s, lane);
        rotated = true;
      }
  }
}

// Singular values of A, (n, rows, columns) with rows >= columns, and its left singular vectors, both
// in descending order; or, if `symmetric`, ascending eigenvalues and eigenvectors of positive
// semidefinite matrices, whose right singular vectors these are. The latter are orthonormal even
// where the eigenvalues are zero.
template <bool symmetric>
__global__ void factors(const double *A, int n, int rows, int columns, double *values,
                        double *vectors) {
  extern __shared__ __align__(16) double memory[];
  int lane = threadIdx.x % WARP, size = rows * columns;
  int item = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (item >= n) return;
  double *B = memory + (threadIdx.x / WARP) * (size * (symmetric ? 2 : 1) + columns);
  double *V = symmetric ? B + size : nullptr, *norms = B + size * (symmetric ? 2 : 1);
  const double *own = A + (long long)item * size;
  double unit = unit_of(own, size, lane);
  for (int t = lane; t < size; t += WARP) {
    B[t % columns * rows + t / columns] = own[t] / unit;
    if (symmetric) V[t] = t % columns == t / columns ? 1 : 0;
  }
  __syncwarp();
  orthogonalize(B, V, rows, columns, lane);

  for (int j = 0; j < columns; ++j) {
    double square = 0;
    for (int r = lane; r < rows; r += WARP) square += B[j * rows + r] * B[j * rows + r];
    square = warp_sum(square);
    if (lane == 0) norms[j] = sqrt(square);
  }
  __syncwarp();
  for (int j = 0; j < columns; ++j) {
    double norm = norms[j];
    int place = 0;
    for (int i = lane; i < columns; i += WARP) {
      bool before = symmetric ? norms[i] < norm : norms[i] > norm;
      place += before || (norms[i] == norm && i < j);
    }
    place = (int)warp_sum(place);
    if (norm != norm) place = j;  // not a number
    if (lane == 0) values[(long long)item * columns + place] = norm * unit;
    const double *column = symmetric ? V + j * columns : B + j * rows;
    double scale = symmetric ? 1 : norm > 0 ? 1 / norm : 0;
    for (int r = lane; r < rows; r += WARP)
      vectors[(long long)item * size + r * columns + place] = column[r] * scale;
  }
}
