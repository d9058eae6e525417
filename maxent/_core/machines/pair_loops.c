/* See pair_loops.h. */
#include "pair_loops.h"

#include "lanes.h"

#define V (MX_PAIR_ROWS / L)
#define FOUR (V < 4 ? V : 4) /* vectors that stay in registers */

/* s += sum_c coef[c] values[c] over columns start .. stop */
INLINE void add_columns(const double *values, mx_size start, mx_size stop,
                        const double *coef, lanes *s) {
    for (int v = 0; v < V; v += FOUR) {
        lanes t[FOUR];
        for (int q = 0; q < FOUR; q++) t[q] = s[v + q];
        for (mx_size c = start; c < stop; c++) {
            const lanes *x = (const lanes *)(values + c * MX_PAIR_ROWS) + v;
            for (int q = 0; q < FOUR; q++) t[q] += coef[c] * x[q];
        }
        for (int q = 0; q < FOUR; q++) s[v + q] = t[q];
    }
}

CLONES int mx_pair_decisions(const double *values, const mx_size *first,
                             mx_size n_classes, const double *coef, const double *bias,
                             double *votes, double *sums, double *scores) {
    lanes wrong = all(0.0);
    for (mx_size i = 0; i < n_classes; i++) {
        lanes *votes_i = (lanes *)(votes + i * MX_PAIR_ROWS);
        lanes *sums_i = (lanes *)(sums + i * MX_PAIR_ROWS);
        for (mx_size j = i + 1; j < n_classes; j++) {
            lanes *votes_j = (lanes *)(votes + j * MX_PAIR_ROWS);
            lanes *sums_j = (lanes *)(sums + j * MX_PAIR_ROWS);
            lanes s[V];
            for (int v = 0; v < V; v++) s[v] = all(*bias);
            if (coef) {
                const mx_size columns = first[n_classes];
                add_columns(values, first[i], first[i + 1], coef + (j - 1) * columns, s);
                add_columns(values, first[j], first[j + 1], coef + i * columns, s);
            } else {
                for (int v = 0; v < V; v++) s[v] += ((const lanes *)values)[v];
                values += MX_PAIR_ROWS;
            }
            for (int v = 0; v < V; v++) {
                lanes for_j = choose(LESS(all(0.0), s[v]), all(1.0), all(0.0));
                votes_j[v] += for_j;
                votes_i[v] += 1.0 - for_j;
                sums_j[v] += s[v];
                sums_i[v] -= s[v];
                wrong += 0.0 * s[v]; /* NaN unless it is finite */
                if (scores) ((lanes *)scores)[v] = s[v];
            }
            if (scores) scores += MX_PAIR_ROWS;
            bias++;
        }
    }
    return total(wrong) == 0.0;
}
