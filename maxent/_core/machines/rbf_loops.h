/* Loops that the compiler vectorises, one translation unit, dispatched at run time
 * by CPU where the tool chain offers it.  No -ffast-math anywhere: reassociation
 * would cancel the rounding constant inside exp. */
#ifndef MAXENT_RBF_LOOPS_H
#define MAXENT_RBF_LOOPS_H
#include <stdint.h>

#include "sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sweeps of the working-set solver work on lengths that are multiples of
 * MX_LANES and report through MX_LANES scratch floats a chunk and extreme. */
#define MX_LANES 16
#define MX_SWEEP_CHUNK 512

#if defined(__GNUC__)
#define MX_PREFETCH(address) __builtin_prefetch(address)
#else
#define MX_PREFETCH(address) ((void)(address))
#endif

/* row[j] (an inner product <x, z_j>) -> exp(-gamma * max(0, xx + zz[j] - 2 row[j]));
 * in single precision 0 below exp(-60) */
void mx_rbf_row_f32(float *row, const float *zz, float xx, float gamma, mx_size n);
void mx_rbf_row_f64(double *row, const double *zz, double xx, double gamma, mx_size n);
/* row[j] -> (gamma * row[j] + coef0) ** degree */
void mx_poly_row_f32(float *row, float gamma, float coef0, int degree, mx_size n);
void mx_poly_row_f64(double *row, double gamma, double coef0, int degree, mx_size n);
/* row[j] -> tanh(gamma * row[j] + coef0) */
void mx_tanh_row_f32(float *row, float gamma, float coef0, mx_size n);
void mx_tanh_row_f64(double *row, double gamma, double coef0, mx_size n);

/* to[j * ld_to + i] = from[i * ld_from + j], i, j < 16; past_cache for what no cache will
 * hold until it is read, with mx_fence before another thread reads it */
void mx_transpose_16(const float *from, mx_size ld_from, float *to, mx_size ld_to,
                     int past_cache);
void mx_fence(void);

/* x = high + low, each a float; high is x rounded */
void mx_split_row(const double *x, mx_size n, float *high, float *low);
/* out += ai * (high + low); returns <high + low, a> */
double mx_split_apply(const float *high, const float *low, const double *a, double ai,
                      mx_size n, double *out);

/* Working-set sweeps (see dual_machine.pyx) over n rows, a multiple of MX_LANES.
 * v -= ci * ki + cj * kj, with the extremes of v + up and -(v + low) by chunk and lane */
void mx_smo_update(float *v, const float *up, const float *low, const float *ki,
                   const float *kj, float ci, float cj, mx_size n,
                   float *above, float *below);
/* from these top = max(v + up), bottom = min(v + low); returns argmax, of several the one
 * with the lowest remainder by MX_LANES, and of these the first */
mx_size mx_smo_extremes(const float *v, const float *up, mx_size n, const float *above,
                        const float *below, float *top, float *bottom);
/* v -= sum_s c[s] rows[s] over m rows of the kernel */
void mx_smo_apply(float *v, const float *const *rows, const float *c, mx_size m,
                  mx_size n);
/* largest gains (vi - v - low)^2 / (ei + e - 2 ki) over v + low < vi by chunk and lane */
void mx_smo_gains(const float *v, const float *low, const float *e, const float *ki,
                  float vi, float ei, mx_size n, float *lanes);
/* from these the position of the largest gain, likewise, or -1 */
mx_size mx_smo_largest(const float *v, const float *low, const float *e,
                       const float *ki, float vi, float ei, mx_size n,
                       const float *lanes);
/* v += c row */
void mx_add_row(float *v, const float *row, float c, mx_size n);
/* the same for m rows, one after another */
void mx_add_rows(float *v, const float *const *rows, const float *c, mx_size m,
                 mx_size n);

/* value = log(1 + exp(x)), slope = 1 / (1 + exp(-x)) */
void mx_softplus_sigmoid(const double *x, mx_size n, double *value, double *slope);

/* out = exp(min(x - shift, top)), top <= 709; exactly 0 below exp(-708), so at -inf */
void mx_exp_shifted(const double *x, double shift, double top, mx_size n, double *out);
/* extremes of the entries above -inf below the diagonal of x (n, n) */
void mx_triangle_range(const double *x, mx_size n, double *least, double *largest);
/* w[j] *= own + diagonal[j] - 2 g[j], brought into [0, 1] */
void mx_edge_row(double *w, const double *g, const double *diagonal, double own,
                 mx_size n);

/* One block of m rows (a multiple of 8, at most MX_MIXTURE_BLOCK) of an EM pass over a
 * mixture of K Gaussians in d dimensions.  Rows lie by coordinate: y[j * stride + t].
 * root holds the lower triangles, by rows, of inverse Cholesky factors (K, d (d+1) / 2),
 * or of diagonal ones their diagonals (K, d).  With rho the posteriors of the block, adds
 * sum w rho to n (K), sum w rho (y - mean) to s1 (K, d) and sum w rho (y - mean)(y -
 * mean)', packed as root is, to s2.  Returns sum w log p(y).  rho has room for
 * K * MX_MIXTURE_BLOCK and scratch for (d + 2) * MX_MIXTURE_BLOCK doubles. */
#define MX_MIXTURE_BLOCK 256
double mx_mixture_block(const double *y, mx_size stride, const double *w, mx_size m,
                        mx_size d, mx_size K, int diagonal, const double *log_scale,
                        const double *mean, const double *root, double *rho,
                        double *scratch, double *n, double *s1, double *s2);

/* out = squared lengths of root (y - mean) of m rows (a multiple of 8) of a block, whose
 * coordinates are MX_MIXTURE_BLOCK apart; scratch as above. */
void mx_whitened_block(const double *y, mx_size m, mx_size d, int diagonal,
                       const double *mean, const double *root, double *scratch,
                       double *out);

/* Adds own (y - mean) to s1 and own (y - mean)(y - mean)', packed, to s2; sum own. */
double mx_moments_block(const double *y, const double *own, mx_size m, mx_size d,
                        int diagonal, const double *mean, double *scratch, double *s1,
                        double *s2);

/* number of bits set in both of two rows of 64-bit words */
mx_size mx_count_both(const uint64_t *a, const uint64_t *b, mx_size words);

#ifdef __cplusplus
}
#endif
#endif
