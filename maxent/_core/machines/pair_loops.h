/* Decisions of the machines of all pairs of classes, MX_PAIR_ROWS rows at a time. */
#ifndef MAXENT_PAIR_LOOPS_H
#define MAXENT_PAIR_LOOPS_H
#include "sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MX_PAIR_ROWS 32

/* Pair (i, j), i < j, is number k in the order (0, 1), (0, 2), ..., (1, 2), ... Its score
 *
 *     bias[k] + sum_{s in i} coef[s] values[s] + sum_{s in j} coef[s] values[s]
 *
 * has the coefficients coef[j - 1] in i and coef[i] in j, of coef (n_classes - 1,
 * columns); the columns of class c are first[c] .. first[c + 1]. Without coef a score is
 * bias[k] + values[k]. values (columns, rows). Adds the votes of the pairs and the sums of their scores, which
 * are positive for j, to those of the classes, (n_classes, rows). scores (n_pairs, rows)
 * unless NULL. Returns 0 if a score is not finite. */
int mx_pair_decisions(const double *values, const mx_size *first, mx_size n_classes,
                      const double *coef, const double *bias, double *votes,
                      double *sums, double *scores);

#ifdef __cplusplus
}
#endif
#endif
