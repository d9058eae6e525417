/* Vectors of doubles: eight where the compiler has them, else one.  Explicit vectors
 * because local arrays of accumulators then stay in registers, which autovectorised
 * loops over lanes do not. For the .c files only. */
#ifndef MAXENT_LANES_H
#define MAXENT_LANES_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "dispatch.h"
#include "sizes.h"

#define L MX_CHAIN_LANES
#define LEAST 1e-290 /* a scale below it has lost its digits */

#if L > 1
#pragma GCC diagnostic ignored "-Wpsabi"
typedef double lanes __attribute__((vector_size(8 * L), aligned(8)));
typedef int64_t mask __attribute__((vector_size(8 * L), aligned(8)));
#define LESS(a, b) ((mask)((a) < (b)))
#define BITS(x) ((mask)(x))
#define REAL(x) ((lanes)(x))
#define LANE(x, l) ((x)[l])
#define SET_LANE(x, l, value) ((x)[l] = (value))
INLINE lanes all(double x) { return x - (lanes){0}; }
INLINE double total(lanes x) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}
INLINE lanes gather(const double *const *e, mx_size j) {
    return (lanes){e[0][j], e[1][j], e[2][j], e[3][j],
                   e[4][j], e[5][j], e[6][j], e[7][j]};
}
#else
typedef double lanes;
typedef int64_t mask;
#define LESS(a, b) (-(mask)((a) < (b)))
INLINE mask BITS(double x) { mask b; memcpy(&b, &x, 8); return b; }
INLINE double REAL(mask b) { double x; memcpy(&x, &b, 8); return x; }
#define LANE(x, l) (x)
#define SET_LANE(x, l, value) ((x) = (value))
INLINE lanes all(double x) { return x; }
INLINE double total(lanes x) { return x; }
INLINE lanes gather(const double *const *e, mx_size j) { return e[0][j]; }
#endif

INLINE lanes choose(mask m, lanes yes, lanes no) {
    return REAL((BITS(yes) & m) | (BITS(no) & ~m));
}

/* A product of positive factors as mantissa 2^exponent. */
typedef struct {
    lanes mantissa;
    mask exponent;
    mx_size count;
} product;

INLINE void split(lanes x, lanes *mantissa, mask *exponent) {
    mask b = BITS(x);
    *exponent += (b >> 52) - 1023;
    *mantissa = REAL((b & 0xfffffffffffffLL) | 0x3ff0000000000000LL);
}

INLINE void multiply(product *p, lanes x) {
    lanes m;
    split(x, &m, &p->exponent);
    p->mantissa *= m;
    if (++p->count == 512) { /* mantissas are below 2 */
        split(p->mantissa, &p->mantissa, &p->exponent);
        p->count = 0;
    }
}

INLINE void log_product(const product *p, double *out) {
    for (int l = 0; l < L; l++)
        out[l] = log(LANE(p->mantissa, l)) +
                 0.69314718055994530942 * (double)LANE(p->exponent, l);
}

#endif
