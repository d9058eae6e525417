/* See tall_loops.h.  Tiles of G are summed over the rows in registers. */
#include "tall_loops.h"

#include "lanes.h"

#define G_LANES MX_GRAM_LANES
#define LOAD(address) (*(const lanes *)(address))

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

CLONES void mx_add_gram(const double *S, mx_size m, mx_size padded, double *G) {
    for (mx_size a = 0; a < padded; a += 4) {
        mx_size b = a - a % G_LANES;
        for (; b + 4 * L <= padded; b += 4 * L) tile(S, m, padded, a, b, 4, G);
        if (b + 2 * L <= padded) {
            tile(S, m, padded, a, b, 2, G);
            b += 2 * L;
        }
        if (b + L <= padded) tile(S, m, padded, a, b, 1, G);
    }
}

CLONES void mx_scaled_row(const double *z, double by, mx_size d, double *out) {
    for (mx_size j = 0; j < d; j++) out[j] = by * z[j];
}

CLONES void mx_times(const double *Z, const double *x, mx_size n, mx_size d,
                     double *out) {
    for (mx_size r = 0; r < n; r++) {
        const double *z = Z + r * d;
        lanes s[4] = {all(0.0), all(0.0), all(0.0), all(0.0)};
        mx_size j = 0;
        double rest = 0.0;
        for (; j + 4 * L <= d; j += 4 * L)
            for (int q = 0; q < 4; q++)
                s[q] += LOAD(z + j + q * L) * LOAD(x + j + q * L);
        for (; j + L <= d; j += L) s[0] += LOAD(z + j) * LOAD(x + j);
        for (; j < d; j++) rest += z[j] * x[j];
        out[r] = total((s[0] + s[1]) + (s[2] + s[3])) + rest;
    }
}

CLONES void mx_add_transposed_times(const double *restrict Z, const double *restrict x,
                                    mx_size n, mx_size d, double *restrict out) {
    mx_size r = 0;
    for (; r + 4 <= n; r += 4) { /* sums are read and written once for four rows */
        const double *z = Z + r * d;
        double a = x[r], b = x[r + 1], c = x[r + 2], e = x[r + 3];
        for (mx_size j = 0; j < d; j++)
            out[j] += (a * z[j] + b * z[d + j]) + (c * z[2 * d + j] + e * z[3 * d + j]);
    }
    for (; r < n; r++)
        for (mx_size j = 0; j < d; j++) out[j] += x[r] * Z[r * d + j];
}
