/* The type of sizes, and how many doubles a vector has. */
#ifndef MAXENT_SIZES_H
#define MAXENT_SIZES_H
#include <stddef.h>

typedef ptrdiff_t mx_size;

/* Lanes of a vector; arrays over lanes have this as their last axis. */
#if defined(__GNUC__)
#define MX_CHAIN_LANES 8
#else
#define MX_CHAIN_LANES 1
#endif

#endif
