/* The double nearest to a whole number times a power of ten, by one product.
 *
 * A power 10^q is (T + t) 2^e with 2^127 <= T < 2^128 and 0 <= t < 1.  The product of the
 * number, shifted to 64 bits, and T has 192 bits, of which the upper 128 are kept: they
 * are at most two units below the true product.  Where all numbers of this interval round
 * to the same double, that is the answer; others, a few in 10^19, and those outside of
 * the normal range are left to the caller.
 *
 * Source: the idea of Lemire (2021), Number parsing at a gigabyte per second. */
#ifndef MAXENT_DECIMALS_H
#define MAXENT_DECIMALS_H
#include <stdint.h>
#include <string.h>

#include "dispatch.h"

typedef struct {
    uint64_t high, low; /* T */
    int64_t exponent;   /* e */
} mx_power;

/* Upper 64 bits of a product; the lower ones are a * b. */
INLINE uint64_t mx_upper_product(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
#endif
}

INLINE int mx_leading_zeros(uint64_t a) {
#if defined(__GNUC__)
    return __builtin_clzll(a);
#else
    int zeros = 0;
    while (!(a >> 63)) {
        a <<= 1;
        zeros++;
    }
    return zeros;
#endif
}

/* 1 and the double nearest to a 10^q, a > 0, or 0 where it is not known. */
INLINE int mx_nearest_double(uint64_t a, const mx_power *p, double *out) {
    int zeros = mx_leading_zeros(a);
    uint64_t high, low, below, rest, bits;
    int64_t exponent;
    a <<= zeros;
    below = mx_upper_product(a, p->low);
    low = a * p->high + below;
    high = mx_upper_product(a, p->high) + (low < below);
    exponent = p->exponent + 191 - zeros;
    if (!(high >> 63)) {
        high = high << 1 | low >> 63;
        low <<= 1;
        exponent--;
    }
    rest = high & 2047; /* below the 53 bits of a double; the half is 1024 */
    if ((rest == 1023 && low >= UINT64_MAX - 4) || (rest == 1024 && low == 0)) {
        return 0;
    }
    if (exponent < -1022 || exponent > 1022) {
        return 0;
    }
    bits = ((uint64_t)(exponent + 1022) << 52) + (high >> 11) + (rest >> 10);
    memcpy(out, &bits, sizeof bits);
    return 1;
}

/* 1 if eight bytes are digits, and their number. */
INLINE int mx_eight_digits(const unsigned char *text, uint64_t *out) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t a;
    memcpy(&a, text, 8);
    if (((a & 0xF0F0F0F0F0F0F0F0u) | ((a + 0x0606060606060606u) & 0xF0F0F0F0F0F0F0F0u) >> 4)
        != 0x3333333333333333u) {
        return 0;
    }
    a = (a & 0x0F0F0F0F0F0F0F0Fu) * (256 * 10 + 1) >> 8; /* pairs, then fours, then all */
    a = (a & 0x00FF00FF00FF00FFu) * (65536ull * 100 + 1) >> 16;
    *out = (a & 0x0000FFFF0000FFFFu) * (4294967296ull * 10000 + 1) >> 32;
    return 1;
#else
    (void)text, (void)out;
    return 0;
#endif
}

#endif
