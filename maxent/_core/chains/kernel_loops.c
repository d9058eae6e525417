/* See kernel_loops.h.
 *
 * With transitions above 1e-100 what underflows never matters again: every state of the
 * next step gets far more from the others.  Otherwise a bound on the mass that underflow
 * may have taken from a lane is carried along from the first step at which it could, and
 * the lane is lost once that may be more than rounding. */
#include "kernel_loops.h"

#include "lanes.h"

#define SAFE 1e-300    /* no product of a step underflows while its smallest is above */
#define NOTICED 1e-17
#define RATE_STEPS 16

/* Y[a + p, b + q] = sum_i F[i, a + p] X[i, b + q]; F (m, s), X (m, s2, lanes) */
INLINE void left_tile(const double *F, const lanes *X, mx_size m, mx_size s, mx_size s2,
                      mx_size a, mx_size b, const int na, const int nb, lanes *Y) {
    lanes acc[4][4];
    for (int p = 0; p < na; p++)
        for (int q = 0; q < nb; q++) acc[p][q] = all(0.0);
    for (mx_size i = 0; i < m; i++)
        for (int p = 0; p < na; p++)
            for (int q = 0; q < nb; q++)
                acc[p][q] += F[i * s + a + p] * X[i * s2 + b + q];
    for (int p = 0; p < na; p++)
        for (int q = 0; q < nb; q++) Y[(a + p) * s2 + b + q] = acc[p][q];
}

/* X[a + p, b + q] = scale psi[a + p, b + q] sum_i Y[a + p, i] trans2[i, b + q] */
INLINE lanes right_tile(const lanes *trans2, const lanes *Y, const lanes *psi,
                        lanes scale, mx_size s2, mx_size a, mx_size b, const int na,
                        const int nb, lanes *X) {
    lanes acc[4][4], sum = all(0.0);
    for (int p = 0; p < na; p++)
        for (int q = 0; q < nb; q++) acc[p][q] = all(0.0);
    for (mx_size i = 0; i < s2; i++)
        for (int p = 0; p < na; p++) {
            lanes own = Y[(a + p) * s2 + i];
            for (int q = 0; q < nb; q++) acc[p][q] += own * trans2[i * s2 + b + q];
        }
    for (int p = 0; p < na; p++)
        for (int q = 0; q < nb; q++) {
            mx_size at = (a + p) * s2 + b + q;
            X[at] = acc[p][q] * psi[at] * scale;
            sum += X[at];
        }
    return sum;
}

INLINE void left_rows(const double *F, const lanes *X, mx_size m, mx_size s, mx_size s2,
                      mx_size a, const int na, lanes *Y) {
    mx_size b = 0;
    for (; b + 4 <= s2; b += 4) left_tile(F, X, m, s, s2, a, b, na, 4, Y);
    if (b + 2 <= s2) {
        left_tile(F, X, m, s, s2, a, b, na, 2, Y);
        b += 2;
    }
    if (b < s2) left_tile(F, X, m, s, s2, a, b, na, 1, Y);
}

INLINE void left_product(const double *F, const lanes *X, mx_size m, mx_size s,
                         mx_size s2, lanes *Y) {
    mx_size a = 0;
    for (; a + 4 <= s; a += 4) left_rows(F, X, m, s, s2, a, 4, Y);
    if (a + 2 <= s) {
        left_rows(F, X, m, s, s2, a, 2, Y);
        a += 2;
    }
    if (a < s) left_rows(F, X, m, s, s2, a, 1, Y);
}

INLINE lanes right_rows(const lanes *trans2, const lanes *Y, const lanes *psi,
                        lanes scale, mx_size s2, mx_size a, const int na, lanes *X) {
    lanes sum = all(0.0);
    mx_size b = 0;
    for (; b + 4 <= s2; b += 4)
        sum += right_tile(trans2, Y, psi, scale, s2, a, b, na, 4, X);
    if (b + 2 <= s2) {
        sum += right_tile(trans2, Y, psi, scale, s2, a, b, na, 2, X);
        b += 2;
    }
    if (b < s2) sum += right_tile(trans2, Y, psi, scale, s2, a, b, na, 1, X);
    return sum;
}

INLINE lanes larger(lanes x, lanes y) { return choose(LESS(x, y), y, x); }

INLINE lanes largest(const lanes *x, mx_size n) {
    lanes top = all(0.0);
    for (mx_size k = 0; k < n; k++) top = larger(top, x[k]);
    return top;
}

INLINE lanes smallest_positive(const lanes *x, mx_size n) {
    lanes least = all(1.0);
    for (mx_size k = 0; k < n; k++)
        least = choose(LESS(all(0.0), x[k]) & LESS(x[k], least), x[k], least);
    return least;
}

INLINE int any(mask m) {
    int found = 0;
    for (int l = 0; l < L; l++) found |= LANE(m, l) != 0;
    return found;
}

INLINE lanes next_step(const mx_chain_pairs *p, lanes scale, lanes *X, lanes *Y) {
    const lanes *psi = (const lanes *)p->psi, *trans2 = (const lanes *)p->trans2;
    mx_size s = p->s, s2 = p->s2, a;
    lanes sum = all(0.0);
    left_product(p->trans, X, s, s, s2, Y);
    for (a = 0; a + 4 <= s; a += 4)
        sum += right_rows(trans2, Y, psi, scale, s2, a, 4, X);
    if (a + 2 <= s) {
        sum += right_rows(trans2, Y, psi, scale, s2, a, 2, X);
        a += 2;
    }
    if (a < s) sum += right_rows(trans2, Y, psi, scale, s2, a, 1, X);
    return sum;
}

/* Bound on the mass that a lane lost to underflow, of a total scaled to one. */
typedef struct {
    lanes floor;  /* no positive entry is below */
    lanes factor; /* nor does any shrink by more in a step */
    mask tiny;
    int active;         /* whether the next two are known */
    lanes taken, rate;  /* of what a step loses, and its growth in a step */
    lanes unseen;
} losses;

/* Entries of at most SAFE / n add up to less than taken rate^k after k steps: with F the
 * step, max(F^K 1) bounds the growth in K steps, max(F 1) that in one. */
INLINE void bound_growth(const mx_chain_pairs *p, losses *w, lanes *X, lanes *Y) {
    mx_size n = p->s * p->s2, K = p->steps > 4 * RATE_STEPS ? RATE_STEPS : 1;
    for (mx_size k = 0; k < n; k++) X[k] = all(1.0);
    next_step(p, all(1.0), X, Y);
    lanes once = largest(X, n);
    for (mx_size k = 1; k < K; k++) next_step(p, all(1.0), X, Y);
    lanes many = largest(X, n);
    for (int l = 0; l < L; l++) {
        double m = LANE(once, l), rate = fmax(pow(LANE(many, l), 1.0 / K), 1e-3 * m);
        SET_LANE(w->rate, l, rate);
        SET_LANE(w->taken, l, rate > 0.0 ? SAFE * n * pow(m / rate, K - 1.0) : SAFE);
    }
    w->active = 1;
}

INLINE losses watch(const mx_chain_pairs *p, const lanes *X, lanes *scratch) {
    mx_size n = p->s * p->s2;
    const lanes *psi = (const lanes *)p->psi;
    losses w = {all(0.0), all(0.0), BITS(all(0.0)), 0, all(0.0), all(0.0), all(0.0)};
    for (int l = 0; l < L; l++)
        if (p->tiny[l]) SET_LANE(w.tiny, l, -1);
    if (!p->sparse) return w;
    w.factor = *(const lanes *)p->least * smallest_positive(psi, n);
    w.floor = smallest_positive(X, n);
    if (any(w.tiny)) {
        bound_growth(p, &w, scratch, scratch + n);
        w.unseen = choose(w.tiny, w.taken, all(0.0));
    }
    return w;
}

/* Before a step from X, whose total is 1 / inv. */
INLINE void step_losses(const mx_chain_pairs *p, losses *w, lanes inv, const lanes *X,
                        lanes *scratch) {
    mx_size n = p->s * p->s2;
    lanes above = larger(inv, all(1.0)); /* X is scaled at the end of the step */
    lanes least = w->factor * (inv / above);
    if (any(LESS(w->floor * least, all(SAFE)))) w->floor = smallest_positive(X, n);
    mask risk = w->tiny | LESS(w->floor * least, all(SAFE));
    w->floor *= inv * w->factor;
    if (!any(risk) && !w->active) return;
    if (!w->active) bound_growth(p, w, scratch, scratch + n);
    w->unseen = w->unseen * w->rate + choose(risk, w->taken * above, all(0.0));
}

CLONES void mx_chain_kernel_lanes(const mx_chain_pairs *p, double *X_, double *scratch_,
                                  double *log_k, int *lost) {
    const lanes *psi = (const lanes *)p->psi, *end = (const lanes *)p->end;
    lanes *X = (lanes *)X_, *scratch = (lanes *)scratch_;
    mx_size n = p->s * p->s2, steps = p->steps;
    product scale = {all(1.0), BITS(all(0.0)), 0};
    mask bad = BITS(all(0.0)), none = BITS(all(0.0));
    lanes sum = all(0.0);
    for (mx_size k = 0; k < n; k++) sum += X[k] *= psi[k];
    losses w = watch(p, X, scratch);
    for (mx_size t = 0;; t++) {
        if (t == steps && end) {
            if (p->sparse) w.unseen *= largest(end, n);
            sum = all(0.0);
            for (mx_size k = 0; k < n; k++) sum += X[k] * end[k];
        }
        /* nothing is left, and nothing can have been lost */
        none |= ~(LESS(all(0.0), sum) | LESS(all(0.0), w.unseen) | w.tiny);
        bad |= ~none & ~(LESS(all(LEAST), sum) & LESS(sum, all(1e290)));
        sum = choose(bad | none, all(1.0), sum);
        lanes inv = 1.0 / sum;
        multiply(&scale, sum);
        w.unseen *= inv;
        bad |= LESS(all(NOTICED), w.unseen);
        if (t >= p->first) {
            double *own = log_k + (t - p->first) * L;
            log_product(&scale, own);
            for (int l = 0; l < L; l++)
                if (LANE(none, l)) own[l] = -INFINITY;
        }
        if (t == steps) break;
        if (p->sparse) step_losses(p, &w, inv, X, scratch);
        sum = next_step(p, inv, X, scratch);
    }
    for (int l = 0; l < L; l++) lost[l] = LANE(bad, l) != 0;
}

CLONES void mx_chain_outer_lanes(mx_size s, mx_size s2, mx_size m, const double *F,
                                 const double *F2, double *out) {
    left_product(F, (const lanes *)F2, m, s, s2, (lanes *)out);
}
