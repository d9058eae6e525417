/* See pair_filter.h.  With z = (s, s') and H = [C, -C'],
 *
 *     update    F = H P H' + R + R',  M = P H',  P <- P - M F^{-1} M'
 *     predict   P <- A P A' + Q, by the blocks (s, s), (s, s'), (s', s')
 *
 * F is factored as L D L'; M then becomes M L^{-T} column by column.  The subtraction in
 * the update loses digits where F is far larger than R + R': such pairs are marked.
 * Every lane has the same bits whatever the others hold. */
#include "pair_filter.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "dispatch.h"

/* lanes pass between inlined functions only, so their calling convention never matters */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

typedef ptrdiff_t size;

#define W MX_PAIRS
#define EACH for (int l = 0; l < W; l++)

/* Eight doubles.  Vector extensions where there are any: a loop over eight is not
 * vectorised reliably. */
#if defined(__GNUC__)
typedef double lane __attribute__((vector_size(8 * W), aligned(8), may_alias));
#define ALL(a) ((a) - (lane){0.0})
#define MUL(a, b) ((a) * (b))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define INVERSE(a) (1.0 / (a))
#define AT(a, l) ((a)[l])
#else
typedef struct {
    double v[W];
} lane;
#define LANES(expression) \
    lane out; \
    EACH out.v[l] = (expression); \
    return out
INLINE lane ALL(double a) { LANES(a); }
INLINE lane MUL(lane a, lane b) { LANES(a.v[l] * b.v[l]); }
INLINE lane ADD(lane a, lane b) { LANES(a.v[l] + b.v[l]); }
INLINE lane SUB(lane a, lane b) { LANES(a.v[l] - b.v[l]); }
INLINE lane INVERSE(lane a) { LANES(1.0 / a.v[l]); }
#define AT(a, l) ((a).v[l])
#endif

/* Largest F_rr in units of the smallest eigenvalue of R + R': what the update leaves has
 * eleven digits at least. */
static const double LARGEST_RATIO = 1e5;
static const double STEADY = 1e-13; /* change of P, in units of its largest entry */
static const double LN_2 = 0.693147180559945309417232;

/* -- records --------------------------------------------------------------------------- */
typedef struct {
    const double *A, *b, *Q, *C, *c, *R, *floor;
} record; /* of x */

typedef struct {
    const lane *A, *b, *Q, *C, *c, *R, *floor;
} records; /* of the eight x' */

INLINE record record_of(const double *x, size n, size d) {
    record r;
    r.A = x;
    r.b = r.A + n * n;
    r.Q = r.b + n;
    r.C = r.Q + n * n;
    r.c = r.C + d * n;
    r.R = r.c + d;
    r.floor = r.R + d * d;
    return r;
}

INLINE records records_of(const lane *x, size n, size d) {
    records r;
    r.A = x;
    r.b = r.A + n * n;
    r.Q = r.b + n;
    r.C = r.Q + n * n;
    r.c = r.C + d * n;
    r.R = r.c + d;
    r.floor = r.R + d * d;
    return r;
}

/* -- scratch --------------------------------------------------------------------------- */
typedef struct {
    lane *P11, *P12, *P22; /* covariance of (s, s'), one array */
    lane *previous;        /* the same, one step before */
    lane *B;               /* A P of one block, or M D^{-1} */
    lane *mean, *old;      /* of (s, s'), and before the prediction */
    lane *M;               /* (d, n + m) columns of P H' L^{-T} */
    lane *F;               /* (d, d) D and L */
    lane *inverse;         /* D^{-1} */
    lane *e;               /* innovations, times L^{-1} */
} state;

INLINE size room_for_products(size n, size m, size d) {
    size most = n > m ? n : m;
    return most * most > (n + m) * d ? most * most : (n + m) * d;
}

ptrdiff_t mx_pair_scratch(ptrdiff_t n, ptrdiff_t m, ptrdiff_t d) {
    size blocks = n * n + n * m + m * m;
    return W * (2 * blocks + room_for_products(n, m, d) + (n + m) * (d + 2) + d * d +
                2 * d);
}

INLINE void place(lane *x, size n, size m, size d, state *s) {
    s->P11 = x;
    s->P12 = s->P11 + n * n;
    s->P22 = s->P12 + n * m;
    s->previous = s->P22 + m * m;
    s->B = s->previous + n * n + n * m + m * m;
    s->mean = s->B + room_for_products(n, m, d);
    s->old = s->mean + n + m;
    s->M = s->old + n + m;
    s->F = s->M + (n + m) * d;
    s->inverse = s->F + d * d;
    s->e = s->inverse + d;
}

/* -- sums of products: a of x, u of x', v of the state with this stride ---------------- */
INLINE lane plus_row(lane sum, const double *a, const lane *v, size stride, size n) {
    for (size k = 0; k < n; k++) sum = ADD(sum, MUL(ALL(a[k]), v[k * stride]));
    return sum;
}

INLINE lane plus_lanes(lane sum, const lane *u, const lane *v, size stride, size m) {
    for (size k = 0; k < m; k++) sum = ADD(sum, MUL(u[k], v[k * stride]));
    return sum;
}

INLINE lane minus_lanes(lane sum, const lane *u, const lane *v, size stride, size m) {
    for (size k = 0; k < m; k++) sum = SUB(sum, MUL(u[k], v[k * stride]));
    return sum;
}

/* -- prediction ------------------------------------------------------------------------ */
INLINE void predict_mean(const record *x, const records *y, size n, size m, state *s) {
    memcpy(s->old, s->mean, (n + m) * sizeof(lane));
    for (size a = 0; a < n; a++)
        s->mean[a] = plus_row(ALL(x->b[a]), x->A + a * n, s->old, 1, n);
    for (size b = 0; b < m; b++)
        s->mean[n + b] = plus_lanes(y->b[b], y->A + b * m, s->old + n, 1, m);
}

INLINE void predict_covariance(const record *x, const records *y, size n, size m,
                               state *s) {
    lane *B = s->B;
    const lane zero = ALL(0.0);
    for (size j = 0; j < n; j++)
        for (size i = 0; i < n; i++)
            B[i * n + j] = plus_row(zero, x->A + i * n, s->P11 + j, n, n);
    for (size i = 0; i < n; i++)
        for (size j = 0; j <= i; j++)
            s->P11[i * n + j] = s->P11[j * n + i] =
                plus_row(ALL(x->Q[i * n + j]), x->A + j * n, B + i * n, 1, n);
    for (size j = 0; j < m; j++)
        for (size i = 0; i < n; i++)
            B[i * m + j] = plus_row(zero, x->A + i * n, s->P12 + j, m, n);
    for (size i = 0; i < n; i++)
        for (size j = 0; j < m; j++)
            s->P12[i * m + j] = plus_lanes(zero, y->A + j * m, B + i * m, 1, m);
    for (size j = 0; j < m; j++)
        for (size i = 0; i < m; i++)
            B[i * m + j] = plus_lanes(zero, y->A + i * m, s->P22 + j, m, m);
    for (size i = 0; i < m; i++)
        for (size j = 0; j <= i; j++)
            s->P22[i * m + j] = s->P22[j * m + i] =
                plus_lanes(y->Q[i * m + j], y->A + j * m, B + i * m, 1, m);
}

/* -- update ---------------------------------------------------------------------------- */
INLINE size reach(const mx_pairs *p, size r, size n) {
    return p->triangular && r + 1 < n ? r + 1 : n;
}

/* e = C mean + c - C' mean' - c' */
INLINE void innovations(const mx_pairs *p, const record *x, const records *y, size n,
                        size m, size d, state *s) {
    for (size r = 0; r < d; r++) {
        lane sum = plus_row(ALL(x->c[r]), x->C + r * n, s->mean, 1, reach(p, r, n));
        sum = minus_lanes(sum, y->C + r * m, s->mean + n, 1, reach(p, r, m));
        s->e[r] = SUB(sum, y->c[r]);
    }
}

/* M = P H' and F = H M + R + R'; marks lanes where F is too large, or is not a number */
INLINE void innovation_covariance(const mx_pairs *p, const record *x, const records *y,
                                  size n, size m, size d, state *s, unsigned char *mark) {
    const lane zero = ALL(0.0);
    for (size r = 0; r < d; r++) {
        const double *c = x->C + r * n;
        const lane *c2 = y->C + r * m;
        lane *M = s->M + r * (n + m);
        size kn = reach(p, r, n), km = reach(p, r, m);
        for (size a = 0; a < n; a++) {
            lane sum = plus_row(zero, c, s->P11 + a * n, 1, kn);
            M[a] = minus_lanes(sum, c2, s->P12 + a * m, 1, km);
        }
        for (size b = 0; b < m; b++) {
            lane sum = plus_row(zero, c, s->P12 + b, m, kn);
            M[n + b] = minus_lanes(sum, c2, s->P22 + b * m, 1, km);
        }
        for (size q = 0; q <= r; q++) {
            const lane *Mq = s->M + q * (n + m);
            lane sum = ADD(y->R[r * d + q], ALL(x->R[r * d + q]));
            sum = plus_row(sum, c, Mq, 1, kn);
            s->F[r * d + q] = minus_lanes(sum, c2, Mq + n, 1, km);
        }
        lane floor = MUL(ADD(y->floor[0], ALL(x->floor[0])), ALL(LARGEST_RATIO));
        lane over = SUB(s->F[r * d + r], floor);
        EACH mark[l] |= !(AT(over, l) <= 0.0);
    }
}

/* F = L D L', M <- M L^{-T} */
INLINE void factor(size N, size d, state *s) {
    for (size q = 0; q < d; q++) {
        lane inverse = INVERSE(s->F[q * d + q]);
        s->inverse[q] = inverse;
        for (size r = q + 1; r < d; r++) {
            lane g = s->F[r * d + q], f = MUL(g, inverse);
            for (size k = q + 1; k < r; k++) /* here F_kq is L_kq already */
                s->F[r * d + k] = SUB(s->F[r * d + k], MUL(g, s->F[k * d + q]));
            s->F[r * d + r] = SUB(s->F[r * d + r], MUL(g, f));
            s->F[r * d + q] = f;
            for (size a = 0; a < N; a++)
                s->M[r * N + a] = SUB(s->M[r * N + a], MUL(f, s->M[q * N + a]));
        }
    }
}

/* e <- L^{-1} e, distance += e' D^{-1} e, mean -= M D^{-1} e */
INLINE void update_mean(size N, size d, state *s, lane *distance) {
    for (size r = 0; r < d; r++) {
        lane e = s->e[r], g;
        for (size q = 0; q < r; q++) e = SUB(e, MUL(s->F[r * d + q], s->e[q]));
        s->e[r] = e;
        g = MUL(e, s->inverse[r]);
        *distance = ADD(*distance, MUL(e, g));
        for (size a = 0; a < N; a++)
            s->mean[a] = SUB(s->mean[a], MUL(s->M[r * N + a], g));
    }
}

/* P -= M D^{-1} M' */
INLINE void update_covariance(size n, size m, size d, state *s) {
    const size N = n + m;
    lane *B = s->B;
    const lane *M = s->M;
    for (size r = 0; r < d; r++)
        for (size a = 0; a < N; a++) B[a * d + r] = MUL(M[r * N + a], s->inverse[r]);
    for (size i = 0; i < n; i++) {
        for (size j = 0; j <= i; j++)
            s->P11[i * n + j] = s->P11[j * n + i] =
                minus_lanes(s->P11[i * n + j], B + i * d, M + j, N, d);
        for (size j = 0; j < m; j++)
            s->P12[i * m + j] = minus_lanes(s->P12[i * m + j], B + i * d, M + n + j, N, d);
    }
    for (size i = 0; i < m; i++)
        for (size j = 0; j <= i; j++)
            s->P22[i * m + j] = s->P22[j * m + i] =
                minus_lanes(s->P22[i * m + j], B + (n + i) * d, M + n + j, N, d);
}

/* -- the whole filter ------------------------------------------------------------------ */
/* product of pivots as mantissa in [1, 2) and exponent */
INLINE void renormalise(double *product, int64_t *exponent) {
    EACH {
        int64_t bits;
        memcpy(&bits, product + l, 8);
        exponent[l] += (bits >> 52) - 1023;
        bits = (bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL;
        memcpy(product + l, &bits, 8);
    }
}

INLINE int is_steady(const double *P, double *previous, size count) {
    double largest = 0.0, change = 0.0;
    for (size i = 0; i < count; i++) {
        double now = fabs(P[i]), by = fabs(P[i] - previous[i]);
        largest = now > largest ? now : largest;
        change = by > change ? by : change;
        previous[i] = P[i];
    }
    return change <= STEADY * largest;
}

INLINE void start(const double *row, const lane *lanes, size n, size m, state *s) {
    for (size a = 0; a < n; a++) s->mean[a] = ALL(row[a]);
    memcpy(s->mean + n, lanes, m * sizeof(lane));
    for (size i = 0; i < n * n; i++) s->P11[i] = ALL(row[n + i]);
    for (size i = 0; i < n * m; i++) s->P12[i] = ALL(0.0);
    memcpy(s->P22, lanes + m, m * m * sizeof(lane));
}

INLINE void filter(const mx_pairs *p, size n, size m, size d, const double *row,
                   const lane *lanes, lane *scratch, double *log_det, double *distance,
                   unsigned char *suspect) {
    const size blocks = n * n + n * m + m * m;
    const size last = p->horizons[p->n_horizons - 1];
    double product[W];
    int64_t exponent[W] = {0};
    int frozen = 0;
    lane far = ALL(0.0);
    size next = 0;
    state s;
    place(scratch, n, m, d, &s);
    start(row, lanes, n, m, &s);
    memset(s.previous, 0, blocks * sizeof(lane));
    EACH product[l] = 1.0;
    memset(suspect, 0, W);
    for (size t = 0; t <= last; t++) {
        record x = record_of(row + n + n * n + t * p->row_step, n, d);
        records y = records_of(lanes + m + m * m + t * p->lane_step, m, d);
        if (t) {
            predict_mean(&x, &y, n, m, &s);
            if (!frozen) predict_covariance(&x, &y, n, m, &s);
            if (p->freeze && !frozen)
                frozen = is_steady((double *)s.P11, (double *)s.previous, blocks * W);
        }
        innovations(p, &x, &y, n, m, d, &s);
        if (!frozen) {
            innovation_covariance(p, &x, &y, n, m, d, &s, suspect);
            factor(n + m, d, &s);
        }
        for (size r = 0; r < d; r++) {
            EACH product[l] *= AT(s.F[r * d + r], l);
            renormalise(product, exponent);
        }
        update_mean(n + m, d, &s, &far);
        if (t == p->horizons[next]) {
            EACH log_det[next * W + l] = log(product[l]) + LN_2 * (double)exponent[l];
            EACH distance[next * W + l] = AT(far, l);
            next++;
        }
        if (!frozen && t < last) update_covariance(n, m, d, &s);
    }
}

/* Sizes known to the compiler for the commonest systems: a third less time. */
#define CASE(N, D) \
    if (n == N && m == N && d == D) { \
        filter(p, N, N, D, row, y, own, log_det, distance, suspect); \
        return; \
    }

CLONES void mx_pair_filter(const mx_pairs *p, const double *row, const double *lanes,
                           double *scratch, double *log_det, double *distance,
                           unsigned char *suspect) {
    const size n = p->n, m = p->m, d = p->d;
    const lane *y = (const lane *)lanes;
    lane *own = (lane *)scratch;
    CASE(1, 1)
    CASE(2, 1)
    CASE(2, 2)
    CASE(3, 1)
    CASE(3, 2)
    CASE(4, 1)
    CASE(4, 2)
    filter(p, n, m, d, row, y, own, log_det, distance, suspect);
}
