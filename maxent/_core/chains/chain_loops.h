/* Loops over Markov chains with scaled probabilities, eight sequences or eight states a
 * vector.  chain.pyx has the formulas. */
#ifndef MAXENT_CHAIN_LOOPS_H
#define MAXENT_CHAIN_LOOPS_H
#include "sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MX_CHAIN_RING 32 /* steps between two additions to the transition counts */

/* A hidden Markov model and the observations of its steps; row -1 of `table` is all ones. */
typedef struct {
    mx_size states;
    mx_size width;       /* states, rounded up to whole vectors */
    const double *start; /* (states,) */
    const double *trans; /* (states, states) */
    const double *trans_t;
    const double *wide;   /* trans with zeros, (width, width) */
    const double *wide_t; /* trans_t with zeros */
    const double *table;  /* (rows, states) likelihoods over the largest of the row */
    const double *ones;   /* (states,) */
    const double *log_trans, *log_table;
    int sparse; /* whether a transition is below 1e-100 */
    /* or a model of its own for each lane: start (states, lanes), transitions (states,
     * states, lanes), tables (lanes,) of pointers; else NULL */
    const double *own_start, *own_trans, *own_trans_t;
    const double *const *own_table;
} mx_chain;

/* Forward pass of MX_CHAIN_LANES sequences, `length` 0 where there is none.  alpha is
 * (T, states, lanes) if keep, else (2, states, lanes); emission likewise what the steps
 * show, or (states, lanes) scratch; inverse (T, lanes), if keep, one over the scale of
 * each step.  lost[l]: the lane has underflowed. */
void mx_chain_forward_lanes(const mx_chain *m, const mx_size *const *row,
                            const mx_size *length, mx_size T, int keep, double *alpha,
                            double *emission, double *inverse, double *log_scale,
                            int *lost);
/* Backward pass of the same; adds weight[l] times the posteriors to counts[row], start
 * counts (states, lanes) and transition counts xi (states, states, lanes, without the
 * factor trans).
 * beta (2, states, lanes) and ring (MX_CHAIN_RING, states, lanes) are scratch. */
void mx_chain_backward_lanes(const mx_chain *m, const mx_size *const *row,
                             const mx_size *length, mx_size T, const double *alpha,
                             const double *emission, const double *inverse,
                             const double *weight, double *beta, double *ring,
                             double *const *counts, double *start_counts, double *xi);
/* The same of one sequence: alpha (T or 2, width), inverse (T,), xi (states, width).
 * Without keep a step that underflows is redone in logs. Returns whether it is lost. */
int mx_chain_forward_one(const mx_chain *m, const mx_size *row, mx_size T, int keep,
                         double *alpha, double *inverse, double *log_scale);
void mx_chain_backward_one(const mx_chain *m, const mx_size *row, mx_size T,
                           const double *alpha, const double *inverse, double weight,
                           double *beta, double *ring, double *counts,
                           double *start_counts, double *xi);
/* Steps begin .. end - 1 of T of the most likely paths: delta[t, j] is the log-probability of
 * the best path to state j (T, states).  `trans` (states, width) are logarithms, -inf beyond
 * the states; last (width,) the step before begin, and that before end afterwards; `entries`
 * the size of log_table. */
void mx_chain_best_steps(const double *log_start, const double *trans,
                         const double *log_table, mx_size entries, const mx_size *row,
                         mx_size begin, mx_size end, mx_size T, mx_size states,
                         mx_size width, double *last, double *delta);
/* sum over lanes times trans, added to (states, states) */
void mx_chain_add_lanes(const double *xi, const double *trans, mx_size n, double *out);

#ifdef __cplusplus
}
#endif
#endif
