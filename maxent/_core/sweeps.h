/* Sweeps over the rows of a kernel machine, by one thread or two.
 *
 * A step of the machine is two sweeps of some microseconds. Of many rows a second thread
 * takes a half: it serves the one that runs the machine, waits busily for orders and
 * answers within a tenth of a microsecond. Each half of the residuals then stays in the
 * cache of the thread that sweeps over it. Of equal extremes the same one is taken with
 * halves as without. */
#ifndef MAXENT_SWEEPS_H
#define MAXENT_SWEEPS_H
#include "vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* with fewer rows, to order and wait costs as much as half a sweep */
#define MX_SHARED_ROWS 4096

typedef struct {
    /* written by the thread that runs the machine */
    long asked; /* number of the last order */
    int kind, left;
    mx_size first, last; /* the rows of the second half */
    float *v, *above, *below;
    const float *up, *low, *e, *ki, *kj;
    const float *const *rows;
    const float *c;
    mx_size m;
    void (*help)(void *task);
    void *task;
    float ci, cj, vi, ei;
    char apart[128]; /* what follows has lines of the cache of its own */
    /* written by the one that serves it */
    long done; /* number of the last order carried out */
    int present;
    mx_size at; /* what the half answers, counted from its first row */
    float top, bottom;
    char between[128];
    /* written by both */
    long claimed;
    char end[128];
} mx_sweeps;

/* Calls run(task, sweeps); where asked, a second thread serves meanwhile. Without one,
 * sweeps is NULL. */
void mx_sweeps_run(void (*run)(void *task, mx_sweeps *s), void *task, int two);

/* mx_smo_update and mx_smo_extremes, mx_smo_gains and mx_smo_largest, mx_smo_apply over all
 * n rows; s is NULL where there is no second thread */
mx_size mx_sweeps_update(mx_sweeps *s, float *v, const float *up, const float *low,
                         const float *ki, const float *kj, float ci, float cj,
                         mx_size n, float *above, float *below, float *top,
                         float *bottom);
mx_size mx_sweeps_select(mx_sweeps *s, const float *v, const float *low, const float *e,
                         const float *ki, float vi, float ei, mx_size n, float *lanes);
void mx_sweeps_apply(mx_sweeps *s, float *v, const float *const *rows, const float *c,
                     mx_size m, mx_size n);
/* Other work that is cut into parts: the second thread calls help(task), which takes
 * parts by mx_sweeps_claim (0, 1, ...) until none are left, as the first one does before
 * it waits. Returns 0 where there is nobody to help. */
int mx_sweeps_begin(mx_sweeps *s, void (*help)(void *task), void *task);
mx_size mx_sweeps_claim(mx_sweeps *s);
void mx_sweeps_wait(mx_sweeps *s);

#ifdef __cplusplus
}
#endif
#endif
