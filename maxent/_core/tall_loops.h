/* Products with matrices of many rows and some hundred columns. */
#ifndef MAXENT_TALL_LOOPS_H
#define MAXENT_TALL_LOOPS_H
#include "sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns are padded to a multiple of this many. */
#define MX_GRAM_LANES 8

/* G += S' S over m rows; S (m, padded), aligned to vectors. Of G (padded, padded) the
 * entries from the first column of each block of lanes on are made. */
void mx_add_gram(const double *S, mx_size m, mx_size padded, double *G);
/* out = by * z */
void mx_scaled_row(const double *z, double by, mx_size d, double *out);

/* out[r] = sum_j Z[r, j] x[j]; Z (n, d) */
void mx_times(const double *Z, const double *x, mx_size n, mx_size d, double *out);
/* out[j] += sum_r Z[r, j] x[r] */
void mx_add_transposed_times(const double *Z, const double *x, mx_size n, mx_size d,
                             double *out);

#ifdef __cplusplus
}
#endif
#endif
