/* Products with matrices of many rows and some hundred columns. */
#ifndef MAXENT_TALL_LOOPS_H
#define MAXENT_TALL_LOOPS_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef ptrdiff_t mx_size;

/* Columns are padded to a multiple of this many. */
#define MX_GRAM_LANES 8
/* Rows that are scaled at a time. */
#define MX_GRAM_ROWS 64

/* G += sum_r weight[r] z_r z_r', weight >= 0; Z (n, d). Of G (padded, padded) the entries
 * from the first column of each block of lanes on are made. scaled has room for
 * MX_GRAM_ROWS * padded doubles. */
void mx_weighted_gram(const double *Z, const double *weight, mx_size n, mx_size d,
                      mx_size padded, double *scaled, double *G);

/* out[r] = sum_j Z[r, j] x[j]; Z (n, d) */
void mx_times(const double *Z, const double *x, mx_size n, mx_size d, double *out);
/* out[j] += sum_r Z[r, j] x[r] */
void mx_add_transposed_times(const double *Z, const double *x, mx_size n, mx_size d,
                             double *out);
/* whether no entry is NaN or infinite */
int mx_all_finite(const double *x, mx_size n);

#ifdef __cplusplus
}
#endif
#endif
