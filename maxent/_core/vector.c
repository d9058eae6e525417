/* See vector.h.  Every loop body is branch-free so that the compiler vectorises it;
 * reductions keep explicit lanes because floating point may not be reassociated. */
#include "vector.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && \
    !defined(__clang__) && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_UNDEFINED__) && !defined(MAXENT_NO_CLONES)
#define CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#define LANES 16

/* exp on doubles and floats: Cody-Waite reduction to |r| <= log(2)/2, a polynomial,
 * and the exponent put together in integer arithmetic.  Arguments are clamped, so
 * the result is 0-like (1e-38, 1e-308) rather than a subnormal at the far left. */
INLINE float exp_f32(float x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float k = x * 1.44269504088896341f + shift;
    int32_t bits;
    memcpy(&bits, &k, 4);
    k -= shift;
    float r = x - k * 0.693145751953125f;
    r -= k * 1.42860682030941723212e-6f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t scale = (bits << 23) + 0x3f800000;
    float s;
    memcpy(&s, &scale, 4);
    return p * s;
}

INLINE double exp_f64(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    double k = x * 1.4426950408889634074 + shift;
    int64_t bits;
    memcpy(&bits, &k, 8);
    k -= shift;
    double r = x - k * 6.93147180369123816490e-1;
    r -= k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t scale = (int64_t)((uint64_t)bits << 52) + 0x3ff0000000000000LL;
    double s;
    memcpy(&s, &scale, 8);
    return p * s;
}

CLONES void mx_rbf_row_f32(float *row, const float *zz, float xx, float gamma,
                           mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        float d = xx + zz[j] - 2.0f * row[j];
        d = d > 0.0f ? d : 0.0f;
        row[j] = exp_f32(-gamma * d);
    }
}

CLONES void mx_rbf_row_f64(double *row, const double *zz, double xx, double gamma,
                           mx_size n) {
    for (mx_size j = 0; j < n; j++) {
        double d = xx + zz[j] - 2.0 * row[j];
        d = d > 0.0 ? d : 0.0;
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

/* One chunk at a time; LANES running extremes, folded at the end of the chunk. */
CLONES void mx_smo_update(float *restrict v, const float *restrict up,
                          const float *restrict low, const float *restrict ki,
                          const float *restrict kj, float ci, float cj, mx_size n,
                          float *restrict cmax, float *restrict cmin) {
    for (mx_size start = 0, c = 0; start < n; start += MX_CHUNK, c++) {
        mx_size stop = start + MX_CHUNK < n ? start + MX_CHUNK : n;
        float hi[LANES], lo[LANES];
        for (int l = 0; l < LANES; l++) {
            hi[l] = -INFINITY;
            lo[l] = INFINITY;
        }
        mx_size t = start;
        for (; t + LANES <= stop; t += LANES) {
            for (int l = 0; l < LANES; l++) {
                float x = v[t + l] - (ci * ki[t + l] + cj * kj[t + l]);
                float a = x + up[t + l], b = x + low[t + l];
                v[t + l] = x;
                hi[l] = a > hi[l] ? a : hi[l];
                lo[l] = b < lo[l] ? b : lo[l];
            }
        }
        for (; t < stop; t++) {
            float x = v[t] - (ci * ki[t] + cj * kj[t]);
            float a = x + up[t], b = x + low[t];
            v[t] = x;
            hi[0] = a > hi[0] ? a : hi[0];
            lo[0] = b < lo[0] ? b : lo[0];
        }
        for (int l = 1; l < LANES; l++) {
            hi[0] = hi[l] > hi[0] ? hi[l] : hi[0];
            lo[0] = lo[l] < lo[0] ? lo[l] : lo[0];
        }
        cmax[c] = hi[0];
        cmin[c] = lo[0];
    }
}

#define TINY_CURVATURE 1e-12f

INLINE float gain_of(float v, float low, float e, float k, float vi, float ei) {
    float d = vi - (v + low);
    float q = ei + e - 2.0f * k;
    d = d > 0.0f ? d : 0.0f;
    q = q > TINY_CURVATURE ? q : TINY_CURVATURE;
    return d * d / q;
}

CLONES void mx_smo_select(const float *restrict v, const float *restrict low,
                          const float *restrict e, const float *restrict ki, float vi,
                          float ei, mx_size n, float *restrict cgain) {
    for (mx_size start = 0, c = 0; start < n; start += MX_CHUNK, c++) {
        mx_size stop = start + MX_CHUNK < n ? start + MX_CHUNK : n;
        float hi[LANES];
        for (int l = 0; l < LANES; l++) hi[l] = 0.0f;
        mx_size t = start;
        for (; t + LANES <= stop; t += LANES) {
            for (int l = 0; l < LANES; l++) {
                float g = gain_of(v[t + l], low[t + l], e[t + l], ki[t + l], vi, ei);
                hi[l] = g > hi[l] ? g : hi[l];
            }
        }
        for (; t < stop; t++) {
            float g = gain_of(v[t], low[t], e[t], ki[t], vi, ei);
            hi[0] = g > hi[0] ? g : hi[0];
        }
        for (int l = 1; l < LANES; l++) hi[0] = hi[l] > hi[0] ? hi[l] : hi[0];
        cgain[c] = hi[0];
    }
}

/* Contraction into fused multiply-adds may differ between the loops above and the
 * scalar code below, so the searches take the largest value rather than equality. */
mx_size mx_argmax_up(const float *v, const float *up, mx_size n) {
    mx_size at = 0;
    float best = -INFINITY;
    for (mx_size t = 0; t < n; t++) {
        float a = v[t] + up[t];
        if (a > best) {
            best = a;
            at = t;
        }
    }
    return at;
}

mx_size mx_argmax_gain(const float *v, const float *low, const float *e,
                       const float *ki, float vi, float ei, mx_size n) {
    mx_size at = 0;
    float best = -1.0f;
    for (mx_size t = 0; t < n; t++) {
        float g = gain_of(v[t], low[t], e[t], ki[t], vi, ei);
        if (g > best) {
            best = g;
            at = t;
        }
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
