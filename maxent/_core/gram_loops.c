/* See gram_loops.h.  Rows are scaled by the roots of their weights into a buffer that
 * stays in cache; tiles of G are summed over the buffer in registers. */
#include "gram_loops.h"

#include <math.h>

#include "lanes.h"

#define G_LANES MX_GRAM_LANES

/* G[a + p, b ...] += sum_r S[r, a + p] S[r, b ...] over nb vectors */
INLINE void tile(const double *S, mx_size m, mx_size padded, mx_size a, mx_size b,
                 const int nb, double *G) {
    lanes acc[4][4];
    for (int p = 0; p < 4; p++)
        for (int q = 0; q < nb; q++) acc[p][q] = all(0.0);
    for (mx_size r = 0; r < m; r++) {
        const double *row = S + r * padded;
        const lanes *v = (const lanes *)(row + b);
        for (int p = 0; p < 4; p++)
            for (int q = 0; q < nb; q++) acc[p][q] += row[a + p] * v[q];
    }
    for (int p = 0; p < 4; p++) {
        lanes *out = (lanes *)(G + (a + p) * padded + b);
        for (int q = 0; q < nb; q++) out[q] += acc[p][q];
    }
}

CLONES void mx_weighted_gram(const double *Z, const double *weight, mx_size n,
                             mx_size d, mx_size padded, double *scaled, double *G) {
    for (mx_size lo = 0; lo < n; lo += MX_GRAM_ROWS) {
        mx_size m = n - lo < MX_GRAM_ROWS ? n - lo : MX_GRAM_ROWS;
        for (mx_size r = 0; r < m; r++) {
            const double *z = Z + (lo + r) * d;
            double root = sqrt(weight[lo + r]);
            double *own = scaled + r * padded;
            for (mx_size j = 0; j < d; j++) own[j] = root * z[j];
            for (mx_size j = d; j < padded; j++) own[j] = 0.0;
        }
        for (mx_size a = 0; a < padded; a += 4) {
            mx_size b = a - a % G_LANES;
            for (; b + 4 * L <= padded; b += 4 * L)
                tile(scaled, m, padded, a, b, 4, G);
            if (b + 2 * L <= padded) {
                tile(scaled, m, padded, a, b, 2, G);
                b += 2 * L;
            }
            if (b + L <= padded) tile(scaled, m, padded, a, b, 1, G);
        }
    }
}
