/* See row_products.h.  A panel of Z, three vectors of columns wide, is packed so that it
 * stays in the first-level cache; eight rows of X are multiplied with it in registers. */
#include "row_products.h"

#include "dispatch.h"

#ifdef SEVERAL_CPUS

#define ROWS MX_PRODUCT_ROWS
#define VECTORS 3
#define DEPTH 128 /* columns of X and Z at a time */
#define WIDE __attribute__((target("arch=x86-64-v4,prefer-vector-width=512")))

int mx_has_row_products(void) { return __builtin_cpu_supports("x86-64-v4"); }

#define real float
#define SUFFIX f32
#include "row_products_body.h"
#undef real
#undef SUFFIX
#define real double
#define SUFFIX f64
#include "row_products_body.h"

#else

int mx_has_row_products(void) { return 0; }
void mx_row_products_f32(const float *X, mx_size rows, const float *Z, mx_size cols,
                         mx_size d, float *out, mx_size ld) {
    (void)X, (void)rows, (void)Z, (void)cols, (void)d, (void)out, (void)ld;
}
void mx_row_products_f64(const double *X, mx_size rows, const double *Z, mx_size cols,
                         mx_size d, double *out, mx_size ld) {
    (void)X, (void)rows, (void)Z, (void)cols, (void)d, (void)out, (void)ld;
}

#endif
