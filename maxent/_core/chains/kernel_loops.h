/* Product kernel of hidden Markov models, one of them with eight others, one to a lane.
 * chain_pairs.pyx has the formulas. */
#ifndef MAXENT_KERNEL_LOOPS_H
#define MAXENT_KERNEL_LOOPS_H
#include "chain_loops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All parameters to the power rho. */
typedef struct {
    mx_size s, s2, steps;
    mx_size first;        /* log_k is wanted after first .. steps transitions */
    const double *trans;  /* (s, s) */
    const double *psi;    /* elementary kernels (s, s2, lanes) */
    const double *trans2; /* (s2, s2, lanes) */
    const double *end;    /* (s, s2, lanes) of what follows the last step, or NULL */
    int sparse;           /* whether a transition is below 1e-100 */
    const double *least;  /* (lanes,) smallest positive entries of trans and trans2,
                             multiplied */
    const unsigned char *tiny; /* (lanes,), not 0 where entries of psi or X may have
                                  underflowed */
} mx_chain_pairs;

/* X (s, s2, lanes) holds the products of the first states' probabilities, and is used up;
 * scratch (2, s, s2, lanes). log_k (steps - first + 1, lanes). lost[l]: the lane has
 * left the range of doubles, or what underflowed may have been more than rounding. */
void mx_chain_kernel_lanes(const mx_chain_pairs *p, double *X, double *scratch,
                           double *log_k, int *lost);
/* out[a, b] = sum_i F[i, a] F2[i, b]; F (m, s), F2 (m, s2, lanes) */
void mx_chain_outer_lanes(mx_size s, mx_size s2, mx_size m, const double *F,
                          const double *F2, double *out);

#ifdef __cplusplus
}
#endif
#endif
