/* See rbf_loops.h.  Every loop body is branch-free so that the compiler vectorises it;
 * reductions keep explicit lanes because floating point may not be reassociated. */
#include "rbf_loops.h"

#include "dispatch.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* floats that are fetched ahead of the hardware, which stops at every page */
#define AHEAD 768

#define LANES MX_LANES

/* exp: Cody-Waite reduction to |r| <= log(2)/2, a minimax polynomial 1 + r q(r)
 * (relative error 5e-9 and 9e-18 before rounding), and the exponent put together in
 * integer arithmetic.  Arguments are clamped, so the far left gives 1e-38 (1e-308)
 * rather than a subnormal.  Arguments beyond +88 (+709) are the caller's business. */
INLINE float exp_f32(float x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x < -87.0f ? -87.0f : x;
    float k = x * 1.44269504088896341f + shift;
    int32_t bits;
    memcpy(&bits, &k, 4);
    k -= shift;
    float r = x - k * 0.693145751953125f;
    r -= k * 1.42860682030941723212e-6f;
    float r2 = r * r;
    float p01 = 1.0000000107780401f + r * 0.50000000134658092f;
    float p23 = 0.16666505195758111f + r * 0.041666464925285905f;
    float p45 = 0.0083691556676973968f + r * 0.0013933649996306250f;
    float p = 1.0f + r * (p01 + r2 * (p23 + r2 * p45));
    int32_t scale = (bits << 23) + 0x3f800000;
    float s;
    memcpy(&s, &scale, 4);
    return p * s;
}

INLINE double exp_f64(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    x = x < -708.0 ? -708.0 : x;
    double k = x * 1.4426950408889634074 + shift;
    int64_t bits;
    memcpy(&bits, &k, 8);
    k -= shift;
    double r = x - k * 6.93147180369123816490e-1;
    r -= k * 1.90821492927058770002e-10;
    double r2 = r * r, r4 = r2 * r2;
    double p01 = 1.0 + r * 0.50000000000000056225;
    double p23 = 0.16666666666666670991 + r * 0.041666666666573067732;
    double p45 = 0.0083333333333261351258 + r * 0.0013888888932514779355;
    double p67 = 1.9841269874820625271e-4 + r * 2.4801504313785540166e-5;
    double p89 = 2.7557255400206424430e-6 + r * 2.7626371065696356076e-7;
    double pa = 2.5105217004720745164e-8;
    double p = 1.0 + r * ((p01 + r2 * p23) + r4 * ((p45 + r2 * p67) +
                                                   r4 * (p89 + r2 * pa)));
    int64_t scale = (int64_t)((uint64_t)bits << 52) + 0x3ff0000000000000LL;
    double s;
    memcpy(&s, &scale, 8);
    return p * s;
}

/* Kernel values in single precision that are nothing beside one are zero: the products of
 * smaller ones with steps are subnormal, and each takes as long as a hundred others. */
#define NOTHING 60.0f /* exp(-60) is 9e-27 */

CLONES void mx_rbf_row_f32(float *row, const float *zz, float xx, float gamma,
                           mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        float d = xx + zz[j] - 2.0f * row[j];
        d = d < 0.0f ? 0.0f : d; /* keeps NaN */
        float e = exp_f32(-gamma * d);
        row[j] = gamma * d > NOTHING ? 0.0f : e; /* keeps NaN */
    }
}

CLONES void mx_rbf_row_f64(double *row, const double *zz, double xx, double gamma,
                           mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        double d = xx + zz[j] - 2.0 * row[j];
        d = d < 0.0 ? 0.0 : d;
        row[j] = exp_f64(-gamma * d);
    }
}

#define POLY_ROW(NAME, T)                                                        \
    CLONES void NAME(T *row, T gamma, T coef0, int degree, mx_size n) {          \
        for (mx_size j = 0; j < n; j++) {                                        \
            T base = gamma * row[j] + coef0, power = 1;                          \
            for (int e = degree; e > 0; e >>= 1) {                               \
                if (e & 1) power *= base;                                        \
                base *= base;                                                    \
            }                                                                    \
            row[j] = power;                                                      \
        }                                                                        \
    }
POLY_ROW(mx_poly_row_f32, float)
POLY_ROW(mx_poly_row_f64, double)

/* tanh(a) = 1 - 2 / (exp(2a) + 1): absolute error of a few ulps of one */
CLONES void mx_tanh_row_f32(float *row, float gamma, float coef0, mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        float a = gamma * row[j] + coef0;
        a = a > 20.0f ? 20.0f : a;
        row[j] = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
    }
}

CLONES void mx_tanh_row_f64(double *row, double gamma, double coef0, mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        double a = gamma * row[j] + coef0;
        a = a > 20.0 ? 20.0 : a;
        row[j] = 1.0 - 2.0 / (exp_f64(2.0 * a) + 1.0);
    }
}

#if defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 12)
typedef float four __attribute__((vector_size(16), aligned(4)));
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

INLINE void put(float *to, four x, int past_cache) {
#if defined(__SSE__)
    if (past_cache) {
        _mm_stream_ps(to, (__m128)x);
        return;
    }
#endif
    memcpy(to, &x, 16);
}
#endif

/* With past_cache the lines of `to` are written without being read first, where they are
 * aligned: all four parts of a line follow each other. */
CLONES void mx_transpose_16(const float *restrict from, mx_size ld_from,
                            float *restrict to, mx_size ld_to, int past_cache) {
#ifdef PICK
    past_cache = past_cache && ((uintptr_t)to | (uintptr_t)ld_to * 4) % 16 == 0;
    for (mx_size j = 0; j < 16; j += 4)
        for (mx_size i = 0; i < 16; i += 4) {
            const float *at = from + i * ld_from + j;
            four a, b, c, d;
            memcpy(&a, at, 16);
            memcpy(&b, at + ld_from, 16);
            memcpy(&c, at + 2 * ld_from, 16);
            memcpy(&d, at + 3 * ld_from, 16);
            four ab = PICK(a, b, 0, 4, 1, 5), AB = PICK(a, b, 2, 6, 3, 7);
            four cd = PICK(c, d, 0, 4, 1, 5), CD = PICK(c, d, 2, 6, 3, 7);
            float *out = to + j * ld_to + i;
            put(out, PICK(ab, cd, 0, 1, 4, 5), past_cache);
            put(out + ld_to, PICK(ab, cd, 2, 3, 6, 7), past_cache);
            put(out + 2 * ld_to, PICK(AB, CD, 0, 1, 4, 5), past_cache);
            put(out + 3 * ld_to, PICK(AB, CD, 2, 3, 6, 7), past_cache);
        }
#else
    (void)past_cache;
    for (mx_size i = 0; i < 16; i++)
        for (mx_size j = 0; j < 16; j++) to[j * ld_to + i] = from[i * ld_from + j];
#endif
}

void mx_fence(void) {
#if defined(__SSE__)
    _mm_sfence();
#endif
}

CLONES void mx_split_row(const double *restrict x, mx_size n, float *restrict high,
                         float *restrict low) {
    for (mx_size j = 0; j < n; j++) {
        float h = (float)x[j];
        high[j] = h;
        low[j] = (float)(x[j] - (double)h);
    }
}

CLONES double mx_split_apply(const float *restrict high, const float *restrict low,
                             const double *restrict a, double ai, mx_size n,
                             double *restrict out) {
    double sum[LANES], rest = 0.0;
    mx_size whole = n - n % LANES;
    for (int l = 0; l < LANES; l++) sum[l] = 0.0;
    for (mx_size j = 0; j < whole; j += LANES)
        for (int l = 0; l < LANES; l++) {
            double k = (double)high[j + l] + (double)low[j + l];
            sum[l] += k * a[j + l];
            out[j + l] += k * ai;
        }
    for (mx_size j = whole; j < n; j++) {
        double k = (double)high[j] + (double)low[j];
        rest += k * a[j];
        out[j] += k * ai;
    }
    for (int l = 0; l < LANES; l++) rest += sum[l];
    return rest;
}

/* The sweeps keep LANES running extremes for each chunk and do not fold them there:
 * one pass over the few extremes finds chunk and lane, and only that lane of that
 * chunk is searched again. */
#define CHUNK MX_SWEEP_CHUNK

/* position in `lanes` (chunks x LANES, no NaN) of the largest entry. The largest is
 * found first, in a tree, and then looked for: a chain of comparisons that remember a
 * position costs as much as a sweep of 500 rows. */
INLINE mx_size best_slot(const float *lanes, mx_size chunks, float *value) {
    float hi[LANES];
    for (int l = 0; l < LANES; l++) hi[l] = lanes[l];
    for (mx_size c = 1; c < chunks; c++)
        for (int l = 0; l < LANES; l++) {
            float a = lanes[c * LANES + l];
            hi[l] = a > hi[l] ? a : hi[l];
        }
    float fold[LANES];
    for (int l = 0; l < LANES; l++) fold[l] = hi[l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            fold[l] = fold[l + half] > fold[l] ? fold[l + half] : fold[l];
    mx_size at = 0, c = 0;
    while (at < LANES - 1 && hi[at] != fold[0]) at++;
    while (c < chunks - 1 && lanes[c * LANES + at] != fold[0]) c++;
    *value = fold[0];
    return c * LANES + at;
}

CLONES void mx_smo_update(float *restrict v, const float *restrict up,
                          const float *restrict low, const float *restrict ki,
                          const float *restrict kj, float ci, float cj, mx_size n,
                          float *restrict above, float *restrict below) {
    for (mx_size start = 0; start < n; start += CHUNK) {
        mx_size stop = start + CHUNK < n ? start + CHUNK : n;
        mx_size slots = start / CHUNK * LANES;
        float hi[LANES], lo[LANES];
        for (int l = 0; l < LANES; l++) hi[l] = lo[l] = -INFINITY;
        mx_size ahead = stop + AHEAD <= n ? AHEAD : 0; /* not beyond the row */
        for (mx_size t = start; t < stop; t += LANES) {
            MX_PREFETCH(kj + t + ahead);
            for (int l = 0; l < LANES; l++) {
                float x = v[t + l] - (ci * ki[t + l] + cj * kj[t + l]);
                float a = x + up[t + l], b = -(x + low[t + l]);
                v[t + l] = x;
                hi[l] = a > hi[l] ? a : hi[l];
                lo[l] = b > lo[l] ? b : lo[l];
            }
        }
        for (int l = 0; l < LANES; l++) above[slots + l] = hi[l];
        for (int l = 0; l < LANES; l++) below[slots + l] = lo[l];
    }
}

CLONES mx_size mx_smo_extremes(const float *restrict v, const float *restrict up,
                               mx_size n, const float *restrict above,
                               const float *restrict below, float *restrict top,
                               float *restrict bottom) {
    mx_size chunks = (n + CHUNK - 1) / CHUNK;
    best_slot(below, chunks, bottom);
    *bottom = -*bottom;
    mx_size slot = best_slot(above, chunks, top);
    mx_size first = slot / LANES * CHUNK + slot % LANES, at = first;
    mx_size stop = first + CHUNK < n ? first + CHUNK : n;
    while (at < stop && v[at] + up[at] != *top) at += LANES;
    return at < stop ? at : first; /* none is the largest where all are NaN */
}

/* Eight rows at a time keep the memory busy; where fewer are left, the first of them
 * fills up, with nothing. All is in multiples of LANES: loops of that length are vectors. */
CLONES void mx_smo_apply(float *restrict v, const float *const *rows, const float *c,
                         mx_size m, mx_size n) {
    for (mx_size s = 0; s < m; s += 8) {
        const float *k[8];
        float x[8];
        for (int i = 0; i < 8; i++) {
            k[i] = s + i < m ? rows[s + i] : rows[s];
            x[i] = s + i < m ? c[s + i] : 0.0f;
        }
        for (mx_size start = 0; start < n; start += LANES)
            for (mx_size t = start; t < start + LANES; t++)
                v[t] -= ((x[0] * k[0][t] + x[1] * k[1][t]) +
                         (x[2] * k[2][t] + x[3] * k[3][t])) +
                        ((x[4] * k[4][t] + x[5] * k[5][t]) +
                         (x[6] * k[6][t] + x[7] * k[7][t]));
    }
}

CLONES void mx_add_row(float *restrict v, const float *restrict row, float c,
                       mx_size n) {
    for (mx_size t = 0; t < n; t++) v[t] += c * row[t];
}

CLONES void mx_add_rows(float *restrict v, const float *const *rows, const float *c,
                        mx_size m, mx_size n) {
    mx_size s = 0;
    for (; s + 4 <= m; s += 4) {
        const float *k0 = rows[s], *k1 = rows[s + 1], *k2 = rows[s + 2];
        const float *k3 = rows[s + 3];
        float x0 = c[s], x1 = c[s + 1], x2 = c[s + 2], x3 = c[s + 3];
        for (mx_size t = 0; t < n; t++)
            v[t] = (((v[t] + x0 * k0[t]) + x1 * k1[t]) + x2 * k2[t]) + x3 * k3[t];
    }
    for (; s + 2 <= m; s += 2) {
        const float *k0 = rows[s], *k1 = rows[s + 1];
        float x0 = c[s], x1 = c[s + 1];
        for (mx_size t = 0; t < n; t++) v[t] = (v[t] + x0 * k0[t]) + x1 * k1[t];
    }
    if (s < m) mx_add_row(v, rows[s], c[s], n);
}

/* 1 / q to 0.2 %: good enough to compare gains, a quarter of the cost of a division */
INLINE float rough_reciprocal(float q) {
    int32_t bits;
    memcpy(&bits, &q, 4);
    bits = 0x7ef311c3 - bits;
    float r;
    memcpy(&r, &bits, 4);
    return r * (2.0f - q * r);
}

INLINE float gain_of(float v, float low, float e, float k, float vi, float ei) {
    float d = vi - (v + low);
    float q = ei + e - 2.0f * k;
    d = d > 0.0f ? d : 0.0f;
    q = q > 1e-12f ? q : 1e-12f;
    return d * d * rough_reciprocal(q);
}

CLONES void mx_smo_gains(const float *restrict v, const float *restrict low,
                         const float *restrict e, const float *restrict ki, float vi,
                         float ei, mx_size n, float *restrict lanes) {
    for (mx_size start = 0; start < n; start += CHUNK) {
        mx_size stop = start + CHUNK < n ? start + CHUNK : n;
        float hi[LANES];
        for (int l = 0; l < LANES; l++) hi[l] = 0.0f;
        mx_size ahead = stop + AHEAD <= n ? AHEAD : 0;
        for (mx_size t = start; t < stop; t += LANES) {
            MX_PREFETCH(ki + t + ahead);
            for (int l = 0; l < LANES; l++) {
                float g = gain_of(v[t + l], low[t + l], e[t + l], ki[t + l], vi, ei);
                hi[l] = g > hi[l] ? g : hi[l];
            }
        }
        for (int l = 0; l < LANES; l++) lanes[start / CHUNK * LANES + l] = hi[l];
    }
}

CLONES mx_size mx_smo_largest(const float *restrict v, const float *restrict low,
                              const float *restrict e, const float *restrict ki,
                              float vi, float ei, mx_size n,
                              const float *restrict lanes) {
    float gain;
    mx_size slot = best_slot(lanes, (n + CHUNK - 1) / CHUNK, &gain);
    if (!(gain > 0.0f)) return -1;
    mx_size t = slot / LANES * CHUNK + slot % LANES, at = t;
    mx_size stop = t + CHUNK < n ? t + CHUNK : n;
    float best = -1.0f;
    for (; t < stop; t += LANES) {
        float g = gain_of(v[t], low[t], e[t], ki[t], vi, ei);
        at = g > best ? t : at;
        best = g > best ? g : best;
    }
    return at;
}

/* log(1 + z), 0 <= z <= 1, by atanh: log(1+z) = 2 atanh(z / (2 + z)), |.| <= 1/3 */
INLINE double log1p_unit(double z) {
    double s = z / (2.0 + z), q = s * s;
    double p = 1.0 / 31;
    p = p * q + 1.0 / 29;
    p = p * q + 1.0 / 27;
    p = p * q + 1.0 / 25;
    p = p * q + 1.0 / 23;
    p = p * q + 1.0 / 21;
    p = p * q + 1.0 / 19;
    p = p * q + 1.0 / 17;
    p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1.0;
    return 2.0 * s * p;
}

CLONES void mx_softplus_sigmoid(const double *restrict x, mx_size n,
                                double *restrict value, double *restrict slope) {
    for (mx_size i = 0; i < n; i++) {
        double a = fabs(x[i]);
        double z = exp_f64(-a);
        double pos = x[i] > 0.0 ? x[i] : 0.0;
        double s = 1.0 / (1.0 + z);
        value[i] = pos + log1p_unit(z);
        slope[i] = x[i] > 0.0 ? s : z * s;
    }
}

#if defined(__GNUC__)
#define BITS_SET(x) __builtin_popcountll(x)
#else
INLINE int BITS_SET(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)((x * 0x0101010101010101u) >> 56);
}
#endif

CLONES mx_size mx_count_both(const uint64_t *restrict a, const uint64_t *restrict b,
                             mx_size words) {
    mx_size sum = 0;
    for (mx_size j = 0; j < words; j++) sum += BITS_SET(a[j] & b[j]);
    return sum;
}

CLONES void mx_exp_shifted(const double *restrict x, double shift, double top,
                           mx_size n, double *restrict out) {
    for (mx_size j = 0; j < n; j++) {
        double d = x[j] - shift;
        d = d > top ? top : d;
        double e = exp_f64(d);
        out[j] = d < -708.0 ? 0.0 : e;
    }
}

CLONES void mx_triangle_range(const double *restrict x, mx_size n, double *least,
                              double *largest) {
    double lo[8], hi[8];
    for (int l = 0; l < 8; l++) {
        lo[l] = INFINITY;
        hi[l] = -INFINITY;
    }
    for (mx_size i = 1; i < n; i++) {
        const double *restrict row = x + i * n;
        mx_size whole = i - i % 8;
        for (mx_size j = 0; j < whole; j += 8)
            for (int l = 0; l < 8; l++) {
                double a = row[j + l], b = a > -INFINITY ? a : INFINITY;
                hi[l] = a > hi[l] ? a : hi[l];
                lo[l] = b < lo[l] ? b : lo[l];
            }
        for (mx_size j = whole; j < i; j++) {
            double a = row[j], b = a > -INFINITY ? a : INFINITY;
            hi[j - whole] = a > hi[j - whole] ? a : hi[j - whole];
            lo[j - whole] = b < lo[j - whole] ? b : lo[j - whole];
        }
    }
    for (int l = 1; l < 8; l++) {
        lo[0] = lo[l] < lo[0] ? lo[l] : lo[0];
        hi[0] = hi[l] > hi[0] ? hi[l] : hi[0];
    }
    *least = lo[0];
    *largest = hi[0];
}

CLONES void mx_edge_row(double *restrict w, const double *restrict g,
                        const double *restrict diagonal, double own, mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        double p = w[j] * (own + diagonal[j] - 2.0 * g[j]);
        p = p > 0.0 ? p : 0.0;
        w[j] = p < 1.0 ? p : 1.0;
    }
}

/* log x for 1 <= x < 2^500: the exponent by bits, log(1 + z) of the fraction */
INLINE double log_above_one(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    uint64_t whole = (bits >> 52) - 1023;
    uint64_t fraction = (bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;
    uint64_t number = whole | 0x4330000000000000ULL; /* 2^52 + whole as a double */
    double m, e;
    memcpy(&m, &fraction, 8);
    memcpy(&e, &number, 8);
    return log1p_unit(m - 1.0) + (e - 4503599627370496.0) * 6.93147180559945286e-1;
}

/* sum a b and sum a b c in eight lanes; m is a multiple of 8 */
INLINE double dot2(const double *a, const double *b, mx_size m) {
    double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (mx_size t = 0; t < m; t += 8)
        for (int l = 0; l < 8; l++) lane[l] += a[t + l] * b[t + l];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

INLINE double sum1(const double *a, mx_size m) {
    double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (mx_size t = 0; t < m; t += 8)
        for (int l = 0; l < 8; l++) lane[l] += a[t + l];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

/* acc = squared length of root (y - mean) a row; dev = y - mean by coordinate */
INLINE void whitened_lengths(const double *y, mx_size stride, mx_size m, mx_size d,
                             int diagonal, const double *mean, const double *root,
                             double *dev, double *z, double *acc) {
    for (mx_size t = 0; t < m; t++) acc[t] = 0.0;
    for (mx_size a = 0; a < d; a++) {
        const double *from = y + a * stride;
        double *to = dev + a * MX_MIXTURE_BLOCK;
        double at = mean[a];
        for (mx_size t = 0; t < m; t++) to[t] = from[t] - at;
        if (diagonal) {
            double r = root[a];
            for (mx_size t = 0; t < m; t++) acc[t] += (r * to[t]) * (r * to[t]);
            continue;
        }
        const double *row = root + a * (a + 1) / 2;
        for (mx_size t = 0; t < m; t++) z[t] = row[a] * to[t];
        for (mx_size b = 0; b < a; b++) {
            const double *other = dev + b * MX_MIXTURE_BLOCK;
            double r = row[b];
            for (mx_size t = 0; t < m; t++) z[t] += r * other[t];
        }
        for (mx_size t = 0; t < m; t++) acc[t] += z[t] * z[t];
    }
}

/* adds the sums of weights own, own dev and own dev dev' about a mean; m is a
   multiple of 8 */
INLINE void add_moments(const double *y, mx_size stride, const double *own, mx_size m,
                        mx_size d, int diagonal, const double *mean, double *dev,
                        double *z, double *first, double *second) {
    const mx_size B = MX_MIXTURE_BLOCK;
    for (mx_size a = 0; a < d; a++) {
        const double *from = y + a * stride;
        double *to = dev + a * B;
        double at = mean[a];
        for (mx_size t = 0; t < m; t++) to[t] = from[t] - at;
    }
    for (mx_size a = 0; a < d; a++) {
        const double *one = dev + a * B;
        for (mx_size t = 0; t < m; t++) z[t] = own[t] * one[t];
        first[a] += sum1(z, m);
        if (diagonal) {
            second[a] += dot2(z, one, m);
            continue;
        }
        for (mx_size b = 0; b <= a; b++)
            second[a * (a + 1) / 2 + b] += dot2(z, dev + b * B, m);
    }
}

CLONES void mx_whitened_block(const double *y, mx_size m, mx_size d, int diagonal,
                              const double *mean, const double *root, double *scratch,
                              double *out) {
    whitened_lengths(y, MX_MIXTURE_BLOCK, m, d, diagonal, mean, root, scratch,
                     scratch + d * MX_MIXTURE_BLOCK, out);
}

CLONES double mx_moments_block(const double *y, const double *own, mx_size m,
                               mx_size d, int diagonal, const double *mean,
                               double *scratch, double *s1, double *s2) {
    add_moments(y, MX_MIXTURE_BLOCK, own, m, d, diagonal, mean, scratch,
                scratch + d * MX_MIXTURE_BLOCK, s1, s2);
    return sum1(own, m);
}

CLONES double mx_mixture_block(const double *y, mx_size stride, const double *w,
                               mx_size m, mx_size d, mx_size K, int diagonal,
                               const double *log_scale, const double *mean,
                               const double *root, double *rho, double *scratch,
                               double *n, double *s1, double *s2) {
    const mx_size B = MX_MIXTURE_BLOCK, P = diagonal ? d : d * (d + 1) / 2;
    double *dev = scratch, *z = scratch + d * B, *top = z + B;
    for (mx_size k = 0; k < K; k++) {
        double *own = rho + k * B, scale = log_scale[k];
        whitened_lengths(y, stride, m, d, diagonal, mean + k * d, root + k * P, dev, z,
                         own);
        for (mx_size t = 0; t < m; t++) own[t] = scale - 0.5 * own[t];
        if (k == 0)
            for (mx_size t = 0; t < m; t++) top[t] = own[t];
        else
            for (mx_size t = 0; t < m; t++) top[t] = own[t] > top[t] ? own[t] : top[t];
    }
    for (mx_size t = 0; t < m; t++) z[t] = 0.0;
    for (mx_size k = 0; k < K; k++) {
        double *own = rho + k * B;
        for (mx_size t = 0; t < m; t++) {
            own[t] = exp_f64(own[t] - top[t]);
            z[t] += own[t];
        }
    }
    for (mx_size t = 0; t < m; t++) {
        top[t] += log_above_one(z[t]);
        z[t] = w[t] / z[t];
    }
    double total = dot2(w, top, m);
    for (mx_size k = 0; k < K; k++) {
        double *own = rho + k * B;
        for (mx_size t = 0; t < m; t++) own[t] *= z[t];
        n[k] += sum1(own, m);
    }
    for (mx_size k = 0; k < K; k++)
        add_moments(y, stride, rho + k * B, m, d, diagonal, mean + k * d, dev, z,
                    s1 + k * d, s2 + k * P);
    return total;
}
