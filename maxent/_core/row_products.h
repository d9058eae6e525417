/* Inner products of rows, out = X Z', for processors with 512-bit vectors: BLAS libraries
 * choose narrower loops on many of them, and these are small matrices in cache. */
#ifndef MAXENT_ROW_PRODUCTS_H
#define MAXENT_ROW_PRODUCTS_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef ptrdiff_t mx_size;

/* Fewer rows of X do not pay for the packing of Z. */
#define MX_PRODUCT_ROWS 8

/* Whether the processor, and the compiler of this file, have what the others need. */
int mx_has_row_products(void);
/* out[i * ld + j] = sum_k X[i * d + k] Z[j * d + k], i < rows, j < cols */
void mx_row_products_f32(const float *X, mx_size rows, const float *Z, mx_size cols,
                         mx_size d, float *out, mx_size ld);
void mx_row_products_f64(const double *X, mx_size rows, const double *Z, mx_size cols,
                         mx_size d, double *out, mx_size ld);

#ifdef __cplusplus
}
#endif
#endif
