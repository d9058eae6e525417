/* Loops that the compiler vectorises, one translation unit, dispatched at run time
 * by CPU where the tool chain offers it.  No -ffast-math anywhere: reassociation
 * would cancel the rounding constant inside exp. */
#ifndef MAXENT_VECTOR_H
#define MAXENT_VECTOR_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef ptrdiff_t mx_size;

/* Rows per chunk of the working-set sweeps. */
#define MX_CHUNK 256

/* row[j] (an inner product <x, z_j>) -> exp(-gamma * max(0, xx + zz[j] - 2 row[j])) */
void mx_rbf_row_f32(float *row, const float *zz, float xx, float gamma, mx_size n);
void mx_rbf_row_f64(double *row, const double *zz, double xx, double gamma, mx_size n);
/* row[j] -> (gamma * row[j] + coef0) ** degree */
void mx_poly_row_f32(float *row, float gamma, float coef0, int degree, mx_size n);
void mx_poly_row_f64(double *row, double gamma, double coef0, int degree, mx_size n);
/* row[j] -> tanh(gamma * row[j] + coef0) */
void mx_tanh_row_f32(float *row, float gamma, float coef0, mx_size n);
void mx_tanh_row_f64(double *row, double gamma, double coef0, mx_size n);

/* Working-set sweeps (see smo.pyx).  Chunk extremes go to cmax / cmin.
 *   v -= ci * ki + cj * kj;   cmax = max(v + up),  cmin = min(v + low)          */
void mx_smo_update(float *v, const float *up, const float *low, const float *ki,
                   const float *kj, float ci, float cj, mx_size n, float *cmax,
                   float *cmin);
/*   cgain = max over v + low < vi of (vi - v - low)^2 / max(ei + e - 2 ki, tiny) */
void mx_smo_select(const float *v, const float *low, const float *e, const float *ki,
                   float vi, float ei, mx_size n, float *cgain);
/* position of the largest v + up, of the largest gain */
mx_size mx_argmax_up(const float *v, const float *up, mx_size n);
mx_size mx_argmax_gain(const float *v, const float *low, const float *e,
                       const float *ki, float vi, float ei, mx_size n);

/* value = log(1 + exp(x)), slope = 1 / (1 + exp(-x)) */
void mx_softplus_sigmoid(const double *x, mx_size n, double *value, double *slope);

#ifdef __cplusplus
}
#endif
#endif
