/* Sums over all pairs of points in the plane, as a yardstick: see workloads/pair_sums.py. */

#include <math.h>
#include <stddef.h>

/* Where eᵗ underflows, vectorized exp and expf fall back to slow code: stop just before. */
#define GAUSSIAN_FLOAT const float K = expf(-fminf(D, 87.0f)), w = K
#define GAUSSIAN_DOUBLE const double K = exp(-fmin(D, 708.0)), w = K
#define STUDENT_FLOAT const float K = 1.0f / (1.0f + D), w = K * K
#define STUDENT_DOUBLE const double K = 1.0 / (1.0 + D), w = K * K

/* A point's own term is 1 in the mass and 0 in the force. */
#define SUMS(NAME, REAL, KERNEL)                                                       \
    void NAME(const REAL *restrict X, const REAL *restrict Y, ptrdiff_t n,             \
              double *restrict mass, REAL *restrict force)                             \
    {                                                                                  \
        _Pragma("omp parallel for schedule(static)")                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                            \
            const REAL x = X[i], y = Y[i];                                             \
            REAL total = 0, along_x = 0, along_y = 0;                                  \
            _Pragma("omp simd reduction(+ : total, along_x, along_y)")                 \
            for (ptrdiff_t j = 0; j < n; j++) {                                        \
                const REAL dx = x - X[j], dy = y - Y[j], D = dx * dx + dy * dy;        \
                KERNEL;                                                                \
                total += K;                                                            \
                along_x += w * dx;                                                     \
                along_y += w * dy;                                                     \
            }                                                                          \
            mass[i] = total - 1;                                                       \
            force[2 * i] = along_x;                                                    \
            force[2 * i + 1] = along_y;                                                \
        }                                                                              \
    }

SUMS(gaussian_float32, float, GAUSSIAN_FLOAT)
SUMS(gaussian_float64, double, GAUSSIAN_DOUBLE)
SUMS(student_float32, float, STUDENT_FLOAT)
SUMS(student_float64, double, STUDENT_DOUBLE)
