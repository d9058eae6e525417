/* The loops of row_products.c, included once for each type. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FN(name) JOIN(name, SUFFIX)
#define vec FN(vec_)
#define WIDTH ((mx_size)(64 / sizeof(real)))
#define LEAD (VECTORS * WIDTH)

typedef real vec __attribute__((vector_size(64)));
typedef real FN(loose_) __attribute__((vector_size(64), aligned(sizeof(real))));

/* C (+)= X panel over `rows` rows and `nv` vectors of columns */
WIDE INLINE void FN(block_)(const real *X, mx_size d, mx_size depth, const real *panel,
                            const int rows, const int nv, int more, real *C,
                            mx_size ld) {
    vec sum[ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < nv; v++)
            sum[i][v] =
                more ? (vec) * (const FN(loose_) *)(C + i * ld + v * WIDTH) : (vec){0};
    for (mx_size k = 0; k < depth; k++) {
        const vec *z = (const vec *)(panel + k * LEAD);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < nv; v++) sum[i][v] += X[i * d + k] * z[v];
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < nv; v++)
            *(FN(loose_) *)(C + i * ld + v * WIDTH) = sum[i][v];
}

/* the same for `cols` columns, which need not fill the last vector */
WIDE INLINE void FN(edge_)(const real *X, mx_size d, mx_size depth, const real *panel,
                           const int rows, const int nv, mx_size cols, int more, real *C,
                           mx_size ld) {
    real part[ROWS * LEAD];
    if (cols == nv * WIDTH) {
        FN(block_)(X, d, depth, panel, rows, nv, more, C, ld);
        return;
    }
    for (int i = 0; i < rows; i++)
        for (mx_size j = 0; j < LEAD; j++)
            part[i * LEAD + j] = more && j < cols ? C[i * ld + j] : 0;
    FN(block_)(X, d, depth, panel, rows, nv, more, part, LEAD);
    for (int i = 0; i < rows; i++)
        for (mx_size j = 0; j < cols; j++) C[i * ld + j] = part[i * LEAD + j];
}

/* all rows of X with one panel */
WIDE INLINE void FN(strip_)(const real *X, mx_size rows, mx_size d, mx_size depth,
                            const real *panel, const int nv, mx_size cols, int more,
                            real *C, mx_size ld) {
    mx_size i = 0;
    for (; i + ROWS <= rows; i += ROWS)
        FN(edge_)(X + i * d, d, depth, panel, ROWS, nv, cols, more, C + i * ld, ld);
    if (i + ROWS / 2 <= rows) {
        FN(edge_)(X + i * d, d, depth, panel, ROWS / 2, nv, cols, more, C + i * ld, ld);
        i += ROWS / 2;
    }
    for (; i < rows; i++)
        FN(edge_)(X + i * d, d, depth, panel, 1, nv, cols, more, C + i * ld, ld);
}

/* panel[k, j] = Z[j, k]; columns from `cols` on are zero */
WIDE INLINE void FN(pack_)(const real *Z, mx_size cols, mx_size d, mx_size depth,
                           real *panel) {
    for (mx_size j = 0; j < cols; j++)
        for (mx_size k = 0; k < depth; k++) panel[k * LEAD + j] = Z[j * d + k];
    for (mx_size k = 0; k < depth; k++)
        for (mx_size j = cols; j < LEAD; j++) panel[k * LEAD + j] = 0;
}

WIDE void FN(mx_row_products_)(const real *X, mx_size rows, const real *Z, mx_size cols,
                               mx_size d, real *out, mx_size ld) {
    real panel[DEPTH * LEAD] __attribute__((aligned(64)));
    mx_size blocks = d > DEPTH ? (d + DEPTH - 1) / DEPTH : 1;
    mx_size depth = (d + blocks - 1) / blocks;
    for (mx_size j = 0; j < cols; j += LEAD) {
        mx_size w = cols - j < LEAD ? cols - j : LEAD, k = 0;
        do { /* once for no columns of X, whose products are zero */
            mx_size t = d - k < depth ? d - k : depth;
            FN(pack_)(Z + j * d + k, w, d, t, panel);
            if (w > 2 * WIDTH)
                FN(strip_)(X + k, rows, d, t, panel, 3, w, k > 0, out + j, ld);
            else if (w > WIDTH)
                FN(strip_)(X + k, rows, d, t, panel, 2, w, k > 0, out + j, ld);
            else
                FN(strip_)(X + k, rows, d, t, panel, 1, w, k > 0, out + j, ld);
            k += depth;
        } while (k < d);
    }
}

#undef JOIN_
#undef JOIN
#undef FN
#undef vec
#undef WIDTH
#undef LEAD
