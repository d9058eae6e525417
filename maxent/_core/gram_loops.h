/* Sums of weighted outer products of rows. */
#ifndef MAXENT_GRAM_LOOPS_H
#define MAXENT_GRAM_LOOPS_H
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

#ifdef __cplusplus
}
#endif
#endif
