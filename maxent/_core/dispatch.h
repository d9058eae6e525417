/* Clones of hot loops for several CPUs, chosen at run time where the tool chain offers
 * it: the loader of glibc does, that of musl does not.  MAXENT_NO_CLONES leaves the
 * plainest of them alone. */
#ifndef MAXENT_DISPATCH_H
#define MAXENT_DISPATCH_H

#include <stdlib.h> /* which says by __GLIBC__ whose it is */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && __GNUC__ >= 12 && !defined(MAXENT_NO_CLONES)
#define SEVERAL_CPUS
#endif

#if defined(SEVERAL_CPUS) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_UNDEFINED__)
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

#endif
