/* See chain_loops.h. */
#include "chain_loops.h"

#include "lanes.h"

#define RING MX_CHAIN_RING

/* An entry below SMALL may lose its successors to underflow, and counts as lost mass; a
 * lane is lost once that mass may matter. */
#define SMALL 1e-150
#define NOTICED 1e-16

/* -- many sequences ------------------------------------------------------------- */
/* acc[k] = sum_i x[i] M[i, j + k] */
INLINE void mix(const lanes *x, const double *M, mx_size n, mx_size j, const int width,
                lanes *out) {
    lanes acc[4];
    for (int k = 0; k < width; k++) acc[k] = all(0.0);
    for (mx_size i = 0; i < n; i++) {
        lanes own = x[i];
        for (int k = 0; k < width; k++) acc[k] += own * M[i * n + j + k];
    }
    for (int k = 0; k < width; k++) out[j + k] = acc[k];
}

INLINE void product_with(const lanes *x, const double *M, mx_size n, lanes *out) {
    mx_size j = 0;
    for (; j + 4 <= n; j += 4) mix(x, M, n, j, 4, out);
    if (j + 2 <= n) {
        mix(x, M, n, j, 2, out);
        j += 2;
    }
    if (j < n) mix(x, M, n, j, 1, out);
}

/* acc[k] = sum_i x[i] M[i, j + k], a matrix for each lane */
INLINE void mix_own(const lanes *x, const lanes *M, mx_size n, mx_size j,
                    const int width, lanes *out) {
    lanes acc[4];
    for (int k = 0; k < width; k++) acc[k] = all(0.0);
    for (mx_size i = 0; i < n; i++) {
        lanes own = x[i];
        for (int k = 0; k < width; k++) acc[k] += own * M[i * n + j + k];
    }
    for (int k = 0; k < width; k++) out[j + k] = acc[k];
}

INLINE void move(const lanes *x, const double *M, const double *own, mx_size n,
                 lanes *out) {
    mx_size j = 0;
    if (!own) {
        product_with(x, M, n, out);
        return;
    }
    for (; j + 4 <= n; j += 4) mix_own(x, (const lanes *)own, n, j, 4, out);
    for (; j < n; j++) mix_own(x, (const lanes *)own, n, j, 1, out);
}

INLINE void show(const mx_chain *m, const mx_size *const *row, const mx_size *length,
                 mx_size t, const double **e) {
    for (int l = 0; l < L; l++) {
        mx_size r = t < length[l] ? row[l][t] : -1;
        const double *table = m->own_table ? m->own_table[l] : m->table;
        e[l] = r < 0 ? m->ones : table + r * m->states;
    }
}

CLONES void mx_chain_forward_lanes(const mx_chain *m, const mx_size *const *row,
                                   const mx_size *length, mx_size T, int keep,
                                   double *alpha_, double *emission, double *inverse_,
                                   double *log_scale, int *lost) {
    mx_size n = m->states;
    lanes *alpha = (lanes *)alpha_, *inverse = (lanes *)inverse_;
    lanes *b = (lanes *)emission;
    const double *e[L];
    product scale = {all(1.0), BITS(all(0.0)), 0};
    lanes unseen = all(0.0);
    mask bad = BITS(all(0.0));
    lanes end = all(0.0);
    for (int l = 0; l < L; l++) SET_LANE(end, l, (double)length[l]);
    for (mx_size t = 0; t < T; t++) {
        const lanes *prev = alpha + (keep ? t - 1 : (t - 1) & 1) * n;
        lanes *next = alpha + (keep ? t : t & 1) * n;
        lanes sum = all(0.0);
        mask small = BITS(all(0.0));
        show(m, row, length, t, e);
        for (mx_size j = 0; j < n; j++) b[j] = gather(e, j);
        if (t > 0)
            move(prev, m->trans, m->own_trans, n, next);
        else
            for (mx_size j = 0; j < n; j++)
                next[j] = m->own_start ? ((const lanes *)m->own_start)[j]
                                       : all(m->start[j]);
        if (m->sparse)
            for (mx_size j = 0; j < n; j++) {
                lanes ahead = next[j];
                next[j] = ahead * b[j];
                sum += next[j];
                small |= LESS(next[j], all(SMALL)) & LESS(all(0.0), ahead) &
                         LESS(all(0.0), b[j]);
            }
        else
            for (mx_size j = 0; j < n; j++) {
                next[j] *= b[j];
                sum += next[j];
            }
        mask live = LESS(all((double)t), end);
        bad |= live & ~LESS(all(LEAST), sum);
        sum = choose(live & ~bad, sum, all(1.0));
        lanes inv = 1.0 / sum;
        if (m->sparse) {
            unseen = (unseen + choose(small, all(SMALL * (double)n), all(0.0))) * inv;
            bad |= live & LESS(all(NOTICED), unseen);
        }
        for (mx_size j = 0; j < n; j++) next[j] *= inv;
        if (keep) {
            inverse[t] = inv;
            b += n;
        }
        multiply(&scale, sum);
    }
    log_product(&scale, log_scale);
    for (int l = 0; l < L; l++) lost[l] = LANE(bad, l) != 0;
}

/* xi[i, j] += sum_s before[s, i] after[s, j]; a tile of it */
INLINE void outer_tile(const lanes *before, const lanes *after, mx_size steps,
                       mx_size n, mx_size i, mx_size j, const int ni, const int nj,
                       lanes *xi) {
    lanes acc[4][4];
    for (int a = 0; a < ni; a++)
        for (int b = 0; b < nj; b++) acc[a][b] = all(0.0);
    for (mx_size s = 0; s < steps; s++) {
        const lanes *p = before + s * n + i, *q = after + s * n + j;
        for (int a = 0; a < ni; a++) {
            lanes own = p[a];
            for (int b = 0; b < nj; b++) acc[a][b] += own * q[b];
        }
    }
    for (int a = 0; a < ni; a++)
        for (int b = 0; b < nj; b++) xi[(i + a) * n + j + b] += acc[a][b];
}

INLINE void add_outer(const lanes *before, const lanes *after, mx_size steps, mx_size n,
                      lanes *xi) {
    mx_size i = 0;
    for (; i + 4 <= n; i += 4) {
        mx_size j = 0;
        for (; j + 4 <= n; j += 4) outer_tile(before, after, steps, n, i, j, 4, 4, xi);
        for (; j < n; j++) outer_tile(before, after, steps, n, i, j, 4, 1, xi);
    }
    for (; i < n; i++) {
        mx_size j = 0;
        for (; j + 4 <= n; j += 4) outer_tile(before, after, steps, n, i, j, 1, 4, xi);
        for (; j < n; j++) outer_tile(before, after, steps, n, i, j, 1, 1, xi);
    }
}

INLINE void add_counts(const lanes *posterior, mx_size n, const mx_size *const *row,
                       const mx_size *length, mx_size t, double *const *counts) {
    const double *p = (const double *)posterior;
    for (int l = 0; l < L; l++) {
        if (t >= length[l] || row[l][t] < 0) continue;
        double *to = counts[l] + row[l][t] * n;
        for (mx_size j = 0; j < n; j++) to[j] += p[j * L + l];
    }
}

CLONES void mx_chain_backward_lanes(const mx_chain *m, const mx_size *const *row,
                                    const mx_size *length, mx_size T,
                                    const double *alpha_, const double *emission,
                                    const double *inverse_, const double *weight,
                                    double *beta_, double *ring_,
                                    double *const *counts, double *start_counts,
                                    double *xi_) {
    mx_size n = m->states, held = 0;
    const lanes *alpha = (const lanes *)alpha_, *inverse = (const lanes *)inverse_;
    const lanes *b = (const lanes *)emission + T * n;
    lanes *beta = (lanes *)beta_, *post = beta + n;
    lanes *ring = (lanes *)ring_, *xi = (lanes *)xi_;
    for (mx_size t = T - 1; t >= 0; t--) {
        /* the ring holds w[t + 1], w[t + 2], ... in its last places */
        if (t == T - 1)
            for (mx_size i = 0; i < n; i++) beta[i] = all(0.0);
        else
            move(ring + (RING - held) * n, m->trans_t, m->own_trans_t, n, beta);
        if (held == RING) {
            add_outer(alpha + t * n, ring, held, n, xi);
            held = 0;
        }
        lanes ends = all(0.0);
        int any = 0;
        for (int l = 0; l < L; l++)
            if (t == length[l] - 1) {
                SET_LANE(ends, l, weight[l]);
                any = 1;
            }
        if (any)
            for (mx_size i = 0; i < n; i++) beta[i] += ends;
        const lanes *own = alpha + t * n;
        for (mx_size i = 0; i < n; i++) post[i] = own[i] * beta[i];
        add_counts(post, n, row, length, t, counts);
        if (t == 0) break;
        held++;
        b -= n;
        lanes *w = ring + (RING - held) * n, inv = inverse[t];
        for (mx_size j = 0; j < n; j++) {
            w[j] = b[j] * beta[j] * inv;
            if (m->sparse) /* unreachable states have unbounded beta */
                w[j] = choose(LESS(own[j], all(SMALL)), all(0.0), w[j]);
        }
    }
    if (held) add_outer(alpha, ring + (RING - held) * n, held, n, xi);
    for (mx_size i = 0; i < n; i++) ((lanes *)start_counts)[i] = post[i];
}

CLONES void mx_chain_add_lanes(const double *xi_, const double *trans, mx_size n,
                               double *out) {
    const lanes *xi = (const lanes *)xi_;
    for (mx_size i = 0; i < n; i++) out[i] += total(xi[i]) * trans[i];
}

/* -- one sequence ---------------------------------------------------------------- */
/* out = x' M, zero beyond the states; x and out (width,), M (width, width) */
INLINE void row_product(const double *x, const double *M, mx_size n, mx_size width,
                        double *out) {
    mx_size k = 0;
    for (; k + 2 * L <= width; k += 2 * L) {
        lanes a0 = all(0.0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0,
              b3 = a0;
        for (mx_size i = 0; i < n; i += 4) {
            const double *r = M + i * width + k;
            a0 += x[i] * *(const lanes *)r;
            b0 += x[i] * *(const lanes *)(r + L);
            if (i + 1 >= n) break;
            r += width;
            a1 += x[i + 1] * *(const lanes *)r;
            b1 += x[i + 1] * *(const lanes *)(r + L);
            if (i + 2 >= n) break;
            r += width;
            a2 += x[i + 2] * *(const lanes *)r;
            b2 += x[i + 2] * *(const lanes *)(r + L);
            if (i + 3 >= n) break;
            r += width;
            a3 += x[i + 3] * *(const lanes *)r;
            b3 += x[i + 3] * *(const lanes *)(r + L);
        }
        *(lanes *)(out + k) = (a0 + a1) + (a2 + a3);
        *(lanes *)(out + k + L) = (b0 + b1) + (b2 + b3);
    }
    for (; k < width; k += L) {
        lanes a0 = all(0.0), a1 = a0;
        for (mx_size i = 0; i < n; i += 2) {
            a0 += x[i] * *(const lanes *)(M + i * width + k);
            if (i + 1 < n) a1 += x[i + 1] * *(const lanes *)(M + (i + 1) * width + k);
        }
        *(lanes *)(out + k) = a0 + a1;
    }
}

INLINE const double *shown(const mx_chain *m, mx_size r) {
    return r < 0 ? m->ones : m->table + r * m->states;
}

/* One step in logs from the scaled probabilities before it; log of its scale. */
static double log_step(const mx_chain *m, const double *prev, mx_size r, mx_size t,
                       double *next) {
    mx_size n = m->states;
    double top = -INFINITY, sum = 0.0;
    for (mx_size j = 0; j < n; j++) {
        double most = t ? -INFINITY : log(m->start[j]), value = 0.0;
        if (t) {
            for (mx_size i = 0; i < n; i++) {
                double x = log(prev[i]) + m->log_trans[i * n + j];
                most = x > most ? x : most;
            }
            if (most > -INFINITY)
                for (mx_size i = 0; i < n; i++)
                    value += exp(log(prev[i]) + m->log_trans[i * n + j] - most);
            most += log(value);
        }
        next[j] = value = most + (r < 0 ? 0.0 : m->log_table[r * n + j]);
        top = value > top ? value : top;
    }
    if (top == -INFINITY) return top;
    for (mx_size j = 0; j < n; j++) sum += next[j] = exp(next[j] - top);
    for (mx_size j = 0; j < n; j++) next[j] /= sum;
    return top + log(sum);
}

CLONES int mx_chain_forward_one(const mx_chain *m, const mx_size *row, mx_size T,
                                int keep, double *alpha, double *inverse,
                                double *log_scale) {
    mx_size n = m->states, width = m->width;
    double mantissa = 1.0, extra = 0.0, unseen = 0.0;
    int64_t exponent = 0;
    if (T > 0) memset(alpha, 0, (keep ? (size_t)T : 2) * width * sizeof(double));
    for (mx_size t = 0; t < T; t++) {
        const double *prev = alpha + (keep ? t - 1 : (t - 1) & 1) * width;
        double *next = alpha + (keep ? t : t & 1) * width;
        const double *b = shown(m, row[t]);
        double sum = 0.0, small = 0.0;
        if (t > 0)
            row_product(prev, m->wide, n, width, next);
        else
            memcpy(next, m->start, n * sizeof(double));
        if (m->sparse)
            for (mx_size j = 0; j < n; j++) {
                double ahead = next[j];
                next[j] = ahead * b[j];
                if (next[j] < SMALL && ahead > 0.0 && b[j] > 0.0)
                    small = SMALL * (double)n;
            }
        else
            for (mx_size j = 0; j < n; j++) next[j] *= b[j];
        for (mx_size j = 0; j < n; j++) sum += next[j];
        if (!(sum > LEAST)) {
            if (keep) return 1;
            double log_sum = log_step(m, prev, row[t], t, next);
            if (log_sum == -INFINITY) return 1;
            extra += log_sum;
            unseen = (unseen + SMALL * (double)n) * exp(-log_sum);
            if (unseen > NOTICED) return 1;
            continue;
        }
        double inv = 1.0 / sum;
        if (m->sparse) {
            unseen = (unseen + small) * inv;
            if (unseen > NOTICED) return 1;
        }
        for (mx_size k = 0; k < width; k += L) *(lanes *)(next + k) *= inv;
        if (inverse) inverse[t] = inv;
        int64_t bits;
        memcpy(&bits, &sum, 8);
        exponent += (bits >> 52) - 1023;
        bits = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
        memcpy(&sum, &bits, 8);
        mantissa *= sum;
        if ((t & 511) == 511) {
            extra += log(mantissa);
            mantissa = 1.0;
        }
    }
    *log_scale = extra + log(mantissa) + 0.69314718055994530942 * (double)exponent;
    return 0;
}

/* xi[i, :] += sum_s before[s, i] after[s, :] */
INLINE void add_outer_one(const double *before, const double *after, mx_size steps,
                          mx_size n, mx_size width, double *xi) {
    for (mx_size k = 0; k < width; k += L) {
        mx_size i = 0;
        for (; i + 4 <= n; i += 4) {
            lanes a0 = all(0.0), a1 = a0, a2 = a0, a3 = a0;
            for (mx_size s = 0; s < steps; s++) {
                lanes w = *(const lanes *)(after + s * width + k);
                const double *p = before + s * width + i;
                a0 += p[0] * w;
                a1 += p[1] * w;
                a2 += p[2] * w;
                a3 += p[3] * w;
            }
            *(lanes *)(xi + i * width + k) += a0;
            *(lanes *)(xi + (i + 1) * width + k) += a1;
            *(lanes *)(xi + (i + 2) * width + k) += a2;
            *(lanes *)(xi + (i + 3) * width + k) += a3;
        }
        for (; i < n; i++) {
            lanes a0 = all(0.0);
            for (mx_size s = 0; s < steps; s++)
                a0 += before[s * width + i] * *(const lanes *)(after + s * width + k);
            *(lanes *)(xi + i * width + k) += a0;
        }
    }
}

CLONES void mx_chain_backward_one(const mx_chain *m, const mx_size *row, mx_size T,
                                  const double *alpha, const double *inverse,
                                  double weight, double *beta, double *ring,
                                  double *counts, double *start_counts, double *xi) {
    mx_size n = m->states, width = m->width, held = 0;
    for (mx_size t = T - 1; t >= 0; t--) {
        const double *own = alpha + t * width;
        if (t == T - 1)
            for (mx_size i = 0; i < n; i++) beta[i] = weight;
        else
            row_product(ring + (RING - held) * width, m->wide_t, n, width, beta);
        if (held == RING) {
            add_outer_one(own, ring, held, n, width, xi);
            held = 0;
        }
        if (row[t] >= 0) {
            double *to = counts + row[t] * n;
            for (mx_size i = 0; i < n; i++) to[i] += own[i] * beta[i];
        }
        if (t == 0) {
            for (mx_size i = 0; i < n; i++) start_counts[i] += own[i] * beta[i];
            break;
        }
        held++;
        double *w = ring + (RING - held) * width;
        const double *b = shown(m, row[t]);
        for (mx_size j = 0; j < n; j++) w[j] = b[j] * beta[j] * inverse[t];
        for (mx_size j = n; j < width; j++) w[j] = 0.0;
        if (m->sparse)
            for (mx_size j = 0; j < n; j++) w[j] = own[j] < SMALL ? 0.0 : w[j];
    }
    if (held) add_outer_one(alpha, ring + (RING - held) * width, held, n, width, xi);
}

/* -- most likely paths ------------------------------------------------------------ */
INLINE lanes larger(lanes a, lanes b) { return choose(LESS(a, b), b, a); }

/* max_i (x[i] + M[i, k..]) */
INLINE lanes best_of(const double *x, const double *M, mx_size n, mx_size width) {
    lanes a0 = x[0] + *(const lanes *)M, a1 = a0;
    mx_size i = 1;
    for (; i + 2 <= n; i += 2) {
        a0 = larger(a0, x[i] + *(const lanes *)(M + i * width));
        a1 = larger(a1, x[i + 1] + *(const lanes *)(M + (i + 1) * width));
    }
    if (i < n) a0 = larger(a0, x[i] + *(const lanes *)(M + i * width));
    return larger(a0, a1);
}

CLONES void mx_chain_best_steps(const double *log_start, const double *trans,
                                const double *log_table, mx_size entries,
                                const mx_size *row, mx_size begin, mx_size end,
                                mx_size T, mx_size n, mx_size width, double *last,
                                double *delta) {
    double *next = last + width;
    for (mx_size t = begin; t < end; t++) {
        double *to = delta + t * n;
        mx_size at = row[t] * n;
        for (mx_size k = 0; k < width; k += L) {
            lanes own;
            if (t > 0)
                own = best_of(last, trans + k, n, width);
            else {
                own = all(-INFINITY);
                for (mx_size j = k; j < n && j < k + L; j++)
                    SET_LANE(own, j - k, log_start[j]);
            }
            if (row[t] >= 0 && at + k + L <= entries) /* what lies beyond is not read */
                own += *(const lanes *)(log_table + at + k);
            else if (row[t] >= 0)
                for (mx_size j = k; j < n && j < k + L; j++)
                    SET_LANE(own, j - k, LANE(own, j - k) + log_table[at + j]);
            *(lanes *)(next + k) = own;
            if ((T - t) * n >= k + L) /* the next steps write over the rest */
                *(lanes *)(to + k) = own;
            else
                for (mx_size j = k; j < n; j++) to[j] = LANE(own, j - k);
        }
        if (n <= L)
            *(lanes *)last = *(const lanes *)next;
        else
            memcpy(last, next, width * sizeof(double));
    }
}
