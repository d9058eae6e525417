/* Kalman filter of the difference of two linear dynamical systems, MX_PAIRS pairs at
 * once: one system x against as many systems x', one to a lane. */
#ifndef MAXENT_PAIR_FILTER_H
#define MAXENT_PAIR_FILTER_H
#include <stddef.h>

#include "sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MX_PAIRS MX_CHAIN_LANES

/* A packed system: mean (n) and covariance (n, n) of the first state, then one or more
 * step records: transition (n, n), offset (n), covariance (n, n), observation (d, n),
 * offset (d), covariance (d, d), smallest eigenvalue of the latter.  Record t holds the
 * step into state t and the observation at t; of record 0 the step is not used.  In
 * packed lanes every number is MX_PAIRS numbers. */
typedef struct {
    ptrdiff_t n, m, d;    /* states of x and x', observed coordinates */
    ptrdiff_t row_step;   /* doubles from one record of x to the next; 0: constant */
    ptrdiff_t lane_step;  /* the same of x', in lanes */
    ptrdiff_t n_horizons;
    const ptrdiff_t *horizons; /* increasing; T stands for observations 0 .. T */
    int triangular;       /* observation matrices are zero above the diagonal */
    int freeze;           /* hold the covariances once they have converged */
} mx_pairs;

/* doubles of scratch */
ptrdiff_t mx_pair_scratch(ptrdiff_t n, ptrdiff_t m, ptrdiff_t d);

/* With F_t and e_t the innovation covariances and innovations of x - x' observed as zero:
 * log_det (n_horizons, MX_PAIRS) = sum_t log|F_t|, distance = sum_t e_t' F_t^{-1} e_t up to each
 * horizon.  suspect (MX_PAIRS): not 0 where rounding may have cost more than five digits.
 * Lanes and scratch at multiples of 64 bytes take a third less time than elsewhere, as
 * no vector then crosses a cache line. */
void mx_pair_filter(const mx_pairs *p, const double *row, const double *lanes,
                    double *scratch, double *log_det, double *distance,
                    unsigned char *suspect);

#ifdef __cplusplus
}
#endif
#endif
