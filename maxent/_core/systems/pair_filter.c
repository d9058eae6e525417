/* See pair_filter.h.  With z = (s, s') and H = [C, -C'],
 *
 *     update    F = H P H' + R + R',  M = P H',  U = P - M F^{-1} M'
 *     predict   P = A U A' + Q, by the blocks (s, s), (s, s'), (s', s')
 *
 * F is factored as L D L'; M then becomes M L^{-T} column by column.  The subtraction in
 * the update loses digits where F is far larger than R + R': such pairs are marked.
 * Every lane has the same bits whatever the others hold.
 *
 * Of the symmetric blocks the lower half is kept.  P and U lie apart, so that products
 * need not be stored: loads, not arithmetic, are what such small matrices cost. */
#include "pair_filter.h"

#include "lanes.h"

/* Short loops over the states, unrolled: where sizes are constants no index is left. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 8")
#else
#define UNROLL
#endif
#define FOR(i, stop) UNROLL for (mx_size i = 0; i < (stop); i++)

#if MX_PAIRS > 1
#define AT_MOST(a, b) ((mask)((a) <= (b)))
#else
#define AT_MOST(a, b) (-(mask)((a) <= (b)))
#endif

/* Largest F_rr in units of the smallest eigenvalue of R + R': the updated covariance has
 * eleven digits at least. */
static const double LARGEST_RATIO = 1e5;
static const double STEADY = 1e-13; /* change of P, in units of its largest entry */

/* -- records --------------------------------------------------------------------------- */
typedef struct {
    const double *A, *b, *Q, *C, *c, *R, *floor;
} record; /* of x */

typedef struct {
    const lanes *A, *b, *Q, *C, *c, *R, *floor;
} records; /* of the systems x' */

#define SET_RECORD(r, x, n, d) \
    r.A = x; \
    r.b = r.A + n * n; \
    r.Q = r.b + n; \
    r.C = r.Q + n * n; \
    r.c = r.C + d * n; \
    r.R = r.c + d; \
    r.floor = r.R + d * d

/* -- scratch --------------------------------------------------------------------------- */
typedef struct {
    lanes *own, *cross, *other; /* blocks (s, s), (s, s'), (s', s'), one array */
} blocks;

typedef struct {
    blocks P, U;       /* covariance of (s, s') before and after the update */
    lanes *previous;   /* P one step before */
    lanes *mean, *old; /* of (s, s'), and before the prediction */
    lanes *M, *K;      /* (d, n + m) columns of P H' L^{-T}, and these over D */
    lanes *F;          /* (d, d) D and L */
    lanes *inverse;    /* D^{-1} */
    lanes *e;          /* innovations, times L^{-1} */
    lanes *row;        /* of A U, n or m */
} state;

INLINE mx_size block_size(mx_size n, mx_size m) { return n * n + n * m + m * m; }

ptrdiff_t mx_pair_scratch(ptrdiff_t n, ptrdiff_t m, ptrdiff_t d) {
    return MX_PAIRS *
           (3 * block_size(n, m) + (n + m) * (2 * d + 3) + d * d + 2 * d);
}

INLINE lanes *place_blocks(lanes *x, mx_size n, mx_size m, blocks *b) {
    b->own = x;
    b->cross = x + n * n;
    b->other = b->cross + n * m;
    return x + block_size(n, m);
}

INLINE void place(lanes *x, mx_size n, mx_size m, mx_size d, state *s) {
    const mx_size N = n + m;
    x = place_blocks(x, n, m, &s->P);
    x = place_blocks(x, n, m, &s->U);
    s->previous = x;
    s->mean = x + block_size(n, m);
    s->old = s->mean + N;
    s->M = s->old + N;
    s->K = s->M + N * d;
    s->F = s->K + N * d;
    s->inverse = s->F + d * d;
    s->e = s->inverse + d;
    s->row = s->e + d;
}

/* Entry of a symmetric matrix of which the lower half is kept. */
#define LOWER(P, i, j, n) ((P)[(i) >= (j) ? (i) * (n) + (j) : (j) * (n) + (i)])

/* -- prediction ------------------------------------------------------------------------ */
INLINE void predict_mean(const record *x, const records *y, mx_size n, mx_size m,
                         state *s) {
    FOR(a, n + m) s->old[a] = s->mean[a];
    FOR(a, n) {
        lanes sum = all(x->b[a]);
        FOR(k, n) sum += x->A[a * n + k] * s->old[k];
        s->mean[a] = sum;
    }
    FOR(b, m) {
        lanes sum = y->b[b];
        FOR(k, m) sum += y->A[b * m + k] * s->old[n + k];
        s->mean[n + b] = sum;
    }
}

/* P = A U A' + Q for any sizes */
INLINE void predict_by_rows(const record *x, const records *y, mx_size n, mx_size m,
                            state *s) {
    lanes *row = s->row;
    FOR(i, n) {
        FOR(j, n) {
            lanes sum = {0.0};
            FOR(k, n) sum += x->A[i * n + k] * LOWER(s->U.own, k, j, n);
            row[j] = sum;
        }
        FOR(j, i + 1) {
            lanes sum = all(x->Q[i * n + j]);
            FOR(k, n) sum += x->A[j * n + k] * row[k];
            s->P.own[i * n + j] = sum;
        }
    }
    FOR(i, n) {
        FOR(j, m) {
            lanes sum = {0.0};
            FOR(k, n) sum += x->A[i * n + k] * s->U.cross[k * m + j];
            row[j] = sum;
        }
        FOR(j, m) {
            lanes sum = {0.0};
            FOR(k, m) sum += y->A[j * m + k] * row[k];
            s->P.cross[i * m + j] = sum;
        }
    }
    FOR(i, m) {
        FOR(j, m) {
            lanes sum = {0.0};
            FOR(k, m) sum += y->A[i * m + k] * LOWER(s->U.other, k, j, m);
            row[j] = sum;
        }
        FOR(j, i + 1) {
            lanes sum = y->Q[i * m + j];
            FOR(k, m) sum += y->A[j * m + k] * row[k];
            s->P.other[i * m + j] = sum;
        }
    }
}

/* The same for sizes that the compiler knows: some rows of A U in registers, and every
 * entry loaded serves a row or a column of sums.  WIDE makes lanes of an entry of A, OF
 * takes one of U, and BASE of Q; of symmetric blocks rows end at the diagonal. */
#define MOST_KNOWN 6 /* states */
#define ROWS_OF(n) ((n) > 4 ? 3 : (n)) /* at once: 18 sums at most stay in registers */
#define PREDICT_BLOCK(P, A, B, U, WIDE, WIDE_B, OF, BASE, SYMMETRIC) \
    FOR(block, (n + rows - 1) / rows) { \
        const mx_size i0 = block * rows, stop = i0 + rows < n ? i0 + rows : n; \
        FOR(i, rows) FOR(j, n) AU[i * n + j] = all(0.0); \
        FOR(k, n) FOR(i, stop - i0) { \
            const lanes a = WIDE(A[(i0 + i) * n + k]); \
            FOR(j, n) AU[i * n + j] += a * OF(U, k, j, n); \
        } \
        FOR(j, SYMMETRIC ? stop : n) { \
            FOR(i, stop - i0) sum[i] = BASE(i0 + i, j); \
            FOR(k, n) { \
                const lanes a = WIDE_B(B[j * n + k]); \
                FOR(i, stop - i0) sum[i] += a * AU[i * n + k]; \
            } \
            FOR(i, stop - i0) \
                if (!SYMMETRIC || i0 + i >= j) P[(i0 + i) * n + j] = sum[i]; \
        } \
    }
#define AS_IT_IS(a) (a)
#define ENTRY(P, i, j, n) ((P)[(i) * (n) + (j)])
#define OWN_NOISE(i, j) all(x->Q[(i) * n + (j)])
#define OTHER_NOISE(i, j) (y->Q[(i) * n + (j)])
#define NO_NOISE(i, j) all(0.0)

INLINE void predict_known(const record *x, const records *y, mx_size n, state *s) {
    lanes AU[4 * MOST_KNOWN], sum[4];
    const mx_size rows = ROWS_OF(n);
    PREDICT_BLOCK(s->P.own, x->A, x->A, s->U.own, all, all, LOWER, OWN_NOISE, 1)
    PREDICT_BLOCK(s->P.other, y->A, y->A, s->U.other, AS_IT_IS, AS_IT_IS, LOWER,
                  OTHER_NOISE, 1)
    PREDICT_BLOCK(s->P.cross, x->A, y->A, s->U.cross, all, AS_IT_IS, ENTRY, NO_NOISE, 0)
}

/* -- update ---------------------------------------------------------------------------- */
/* Columns of a row of the observation matrix that are not zero. */
#define REACH(r, n) (triangular && (r) + 1 < (n) ? (r) + 1 : (n))

/* e = C mean + c - C' mean' - c' */
INLINE void innovations(int triangular, const record *x, const records *y, mx_size n,
                        mx_size m, mx_size d, state *s) {
    FOR(r, d) {
        const mx_size kn = REACH(r, n), km = REACH(r, m);
        lanes sum = all(x->c[r]);
        FOR(k, kn) sum += x->C[r * n + k] * s->mean[k];
        FOR(k, km) sum -= y->C[r * m + k] * s->mean[n + k];
        s->e[r] = sum - y->c[r];
    }
}

/* M = P H' and F = H M + R + R'; marks lanes where F is too large, or is not a number */
INLINE void innovation_covariance(int triangular, const record *x, const records *y,
                                  mx_size n, mx_size m, mx_size d, state *s,
                                  mask *large) {
    const lanes limit = LARGEST_RATIO * (y->floor[0] + x->floor[0]);
    FOR(r, d) {
        const double *c = x->C + r * n;
        const lanes *c2 = y->C + r * m;
        lanes *M = s->M + r * (n + m);
        const mx_size kn = REACH(r, n), km = REACH(r, m);
        FOR(a, n) {
            lanes sum = {0.0};
            FOR(k, kn) sum += c[k] * LOWER(s->P.own, a, k, n);
            FOR(k, km) sum -= c2[k] * s->P.cross[a * m + k];
            M[a] = sum;
        }
        FOR(b, m) {
            lanes sum = {0.0};
            FOR(k, kn) sum += c[k] * s->P.cross[k * m + b];
            FOR(k, km) sum -= c2[k] * LOWER(s->P.other, b, k, m);
            M[n + b] = sum;
        }
        FOR(q, r + 1) {
            const lanes *Mq = s->M + q * (n + m);
            lanes sum = y->R[r * d + q] + x->R[r * d + q];
            FOR(k, kn) sum += c[k] * Mq[k];
            FOR(k, km) sum -= c2[k] * Mq[n + k];
            s->F[r * d + q] = sum;
        }
        *large |= ~AT_MOST(s->F[r * d + r], limit);
    }
}

/* F = L D L', M <- M L^{-T}, K = M D^{-1} */
INLINE void factor(mx_size N, mx_size d, state *s) {
    FOR(q, d) {
        const lanes inverse = 1.0 / s->F[q * d + q];
        s->inverse[q] = inverse;
        for (mx_size r = q + 1; r < d; r++) {
            const lanes g = s->F[r * d + q], f = g * inverse;
            for (mx_size k = q + 1; k < r; k++) /* here F_kq is L_kq already */
                s->F[r * d + k] -= g * s->F[k * d + q];
            s->F[r * d + r] -= g * f;
            s->F[r * d + q] = f;
            FOR(a, N) s->M[r * N + a] -= f * s->M[q * N + a];
        }
        FOR(a, N) s->K[q * N + a] = s->M[q * N + a] * inverse;
    }
}

/* e <- L^{-1} e, distance += e' D^{-1} e, mean -= M D^{-1} e */
INLINE void update_mean(mx_size N, mx_size d, state *s, lanes *distance) {
    FOR(r, d) {
        lanes e = s->e[r];
        FOR(q, r) e -= s->F[r * d + q] * s->e[q];
        s->e[r] = e;
        *distance += e * (e * s->inverse[r]);
        FOR(a, N) s->mean[a] -= s->K[r * N + a] * e;
    }
}

/* U = P - M D^{-1} M' */
INLINE void update_covariance(mx_size n, mx_size m, mx_size d, state *s) {
    const mx_size N = n + m;
    FOR(i, n) {
        FOR(j, i + 1) {
            lanes sum = s->P.own[i * n + j];
            FOR(r, d) sum -= s->K[r * N + i] * s->M[r * N + j];
            s->U.own[i * n + j] = sum;
        }
        FOR(j, m) {
            lanes sum = s->P.cross[i * m + j];
            FOR(r, d) sum -= s->K[r * N + i] * s->M[r * N + n + j];
            s->U.cross[i * m + j] = sum;
        }
    }
    FOR(i, m) FOR(j, i + 1) {
        lanes sum = s->P.other[i * m + j];
        FOR(r, d) sum -= s->K[r * N + n + i] * s->M[r * N + n + j];
        s->U.other[i * m + j] = sum;
    }
}

/* -- the whole filter ------------------------------------------------------------------ */
INLINE int is_steady(const double *P, double *previous, mx_size count) {
    double largest = 0.0, change = 0.0;
    for (mx_size i = 0; i < count; i++) {
        double now = fabs(P[i]), by = fabs(P[i] - previous[i]);
        largest = now > largest ? now : largest;
        change = by > change ? by : change;
        previous[i] = P[i];
    }
    return change <= STEADY * largest;
}

/* Upper halves are zero throughout. */
INLINE void start(const double *row, const lanes *column, mx_size n, mx_size m,
                  state *s) {
    memset(s->P.own, 0, block_size(n, m) * sizeof(lanes));
    memset(s->previous, 0, block_size(n, m) * sizeof(lanes));
    for (mx_size a = 0; a < n; a++) s->mean[a] = all(row[a]);
    for (mx_size b = 0; b < m; b++) s->mean[n + b] = column[b];
    for (mx_size i = 0; i < n; i++)
        for (mx_size j = 0; j <= i; j++) s->P.own[i * n + j] = all(row[n + i * n + j]);
    for (mx_size i = 0; i < m; i++)
        for (mx_size j = 0; j <= i; j++) s->P.other[i * m + j] = column[m + i * m + j];
}

/* known: n = m, and d, are constants here */
INLINE void filter(const mx_pairs *p, int known, mx_size n, mx_size m, mx_size d,
                   int triangular, const double *row, const lanes *column,
                   double *scratch, double *log_det, double *distance,
                   unsigned char *suspect) {
    const mx_size last = p->horizons[p->n_horizons - 1];
    product pivots = {.mantissa = all(1.0)};
    lanes far = {0.0};
    mask large = {0};
    mx_size next = 0;
    int frozen = 0;
    state own_state, *s = &own_state;
    place((lanes *)scratch, n, m, d, s);
    start(row, column, n, m, s);
    for (mx_size t = 0; t <= last; t++) {
        const double *own = row + n + n * n + t * p->row_step;
        const lanes *others = column + m + m * m + t * p->lane_step;
        record x;
        records y;
        SET_RECORD(x, own, n, d);
        SET_RECORD(y, others, m, d);
        if (t) {
            predict_mean(&x, &y, n, m, s);
            if (!frozen && known) predict_known(&x, &y, n, s);
            if (!frozen && !known) predict_by_rows(&x, &y, n, m, s);
            if (p->freeze && !frozen)
                frozen = is_steady((double *)s->P.own, (double *)s->previous,
                                   block_size(n, m) * MX_PAIRS);
        }
        innovations(triangular, &x, &y, n, m, d, s);
        if (!frozen) {
            innovation_covariance(triangular, &x, &y, n, m, d, s, &large);
            factor(n + m, d, s);
        }
        FOR(r, d) multiply(&pivots, s->F[r * d + r]);
        update_mean(n + m, d, s, &far);
        if (t == p->horizons[next]) {
            log_product(&pivots, log_det + next * MX_PAIRS);
            for (int l = 0; l < MX_PAIRS; l++)
                distance[next * MX_PAIRS + l] = LANE(far, l);
            next++;
        }
        if (!frozen && t < last) update_covariance(n, m, d, s);
    }
    for (int l = 0; l < MX_PAIRS; l++) suspect[l] = LANE(large, l) != 0;
}

/* Sizes known to the compiler for the commonest systems. */
#define CASE(N, D) \
    if (n == N && m == N && d == D && p->triangular) { \
        filter(p, 1, N, N, D, 1, row, y, scratch, log_det, distance, suspect); \
        return; \
    }

CLONES void mx_pair_filter(const mx_pairs *p, const double *row, const double *packed,
                           double *scratch, double *log_det, double *distance,
                           unsigned char *suspect) {
    const mx_size n = p->n, m = p->m, d = p->d;
    const lanes *y = (const lanes *)packed;
    CASE(1, 1)
    CASE(2, 1)
    CASE(2, 2)
    CASE(3, 1)
    CASE(3, 2)
    CASE(4, 1)
    CASE(4, 2)
    CASE(6, 3)
    filter(p, 0, n, m, d, p->triangular, row, y, scratch, log_det, distance, suspect);
}
