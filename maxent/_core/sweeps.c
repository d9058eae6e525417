#include "sweeps.h"

#include <string.h>

enum { SELECT, UPDATE, APPLY, HELP, LEAVE };

#if defined(_OPENMP) && defined(__GNUC__) && defined(__unix__)
#define SHARED 1
#include <sched.h>
#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define PUT(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)
#define TAKE(x) __atomic_fetch_add(&(x), 1, __ATOMIC_RELAXED)
#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() ((void)0)
#endif
#else
#define SHARED 0
#define GET(x) (x)
#define PUT(x, value) ((x) = (value))
#define TAKE(x) ((x)++)
#endif

#define PATIENT 2000 /* looks, some 20 us, before a thread makes way for others */
#define LATE 30000   /* and before the second one counts as held up */

/* Looks until *at is (or, with `other`, is not) a value. */
static long wait_for(const long *at, long value, int other) {
    long looks = 0;
#if SHARED
    while ((GET(*at) == value) == other) {
        PAUSE();
        if (++looks > PATIENT && looks % 32 == 0) sched_yield();
    }
#else
    (void)at, (void)value, (void)other;
#endif
    return looks;
}

static void carry_out(mx_sweeps *s) {
    mx_size f = s->first, n = s->last - f, slots = f / MX_SWEEP_CHUNK * MX_LANES;
    if (s->kind == UPDATE) {
        mx_smo_update(s->v, s->up, s->low, s->ki, s->kj, s->ci, s->cj, f, s->last,
                      s->above, s->below);
        s->at = mx_smo_extremes(s->v + f, s->up + f, n, s->above + slots,
                                s->below + slots, &s->top, &s->bottom);
    } else if (s->kind == SELECT) {
        mx_smo_gains(s->v, s->low, s->e, s->ki, s->vi, s->ei, f, s->last, s->above);
        s->at = mx_smo_largest(s->v + f, s->low + f, s->e + f, s->ki + f, s->vi, s->ei, n,
                               s->above + slots, &s->top);
    } else if (s->kind == APPLY)
        mx_smo_apply(s->v, s->rows, s->c, s->m, f, s->last);
    else
        s->help(s->task);
}

/* What the second thread does. */
static void serve(mx_sweeps *s) {
    long order = 0;
    PUT(s->present, 1);
    for (;;) {
        wait_for(&s->asked, order, 1);
        order = GET(s->asked);
        if (s->kind == LEAVE) return;
        carry_out(s);
        PUT(s->done, order);
    }
}

/* What the first one does last. */
static void leave(mx_sweeps *s) {
    if (s->left) return;
    s->left = 1;
    s->kind = LEAVE;
    PUT(s->asked, s->asked + 1);
}

void mx_sweeps_run(void (*run)(void *task, mx_sweeps *s), void *task, int two) {
    mx_sweeps sweeps;
    if (!SHARED || !two) {
        run(task, NULL);
        return;
    }
    memset(&sweeps, 0, sizeof sweeps);
#if SHARED
#pragma omp parallel for num_threads(2) schedule(static, 1)
#endif
    for (int who = 0; who < 2; who++)
        if (who) {
            serve(&sweeps);
        } else { /* the other thread may never come: then nothing waits for it */
            run(task, &sweeps);
            leave(&sweeps);
        }
}

static int is_there(const mx_sweeps *s) {
    return s && !s->left && GET(s->present);
}

/* Rows up to which this thread sweeps: half of many where there is another one. */
static mx_size own_rows(const mx_sweeps *s, mx_size n) {
    mx_size chunks = (n + MX_SWEEP_CHUNK - 1) / MX_SWEEP_CHUNK;
    if (n < MX_SHARED_ROWS || !is_there(s)) return n;
    return (chunks + 1) / 2 * MX_SWEEP_CHUNK;
}

/* Hand over what is written in s. */
static void begin(mx_sweeps *s, int kind, mx_size first, mx_size last) {
    s->kind = kind;
    s->first = first;
    s->last = last;
    PUT(s->asked, s->asked + 1);
}

static void finish(mx_sweeps *s) {
    if (wait_for(&s->done, s->asked, 0) > LATE) leave(s); /* it was held up */
}

/* The position of the largest over both halves, as one search finds it. */
static mx_size joined(const mx_sweeps *s, mx_size at, float *top) {
    int other = s->top == *top ? s->at % MX_LANES < at % MX_LANES : s->top > *top;
    if (!other) return at;
    *top = s->top;
    return s->first + s->at;
}

mx_size mx_sweeps_update(mx_sweeps *s, float *v, const float *up, const float *low,
                         const float *ki, const float *kj, float ci, float cj,
                         mx_size n, float *above, float *below, float *top,
                         float *bottom) {
    mx_size half = own_rows(s, n);
    if (half < n) {
        s->v = v, s->up = up, s->low = low;
        s->ki = ki, s->kj = kj, s->ci = ci, s->cj = cj;
        s->above = above, s->below = below;
        begin(s, UPDATE, half, n);
    }
    mx_smo_update(v, up, low, ki, kj, ci, cj, 0, half, above, below);
    mx_size at = mx_smo_extremes(v, up, half, above, below, top, bottom);
    if (half == n) return at;
    finish(s);
    if (s->bottom < *bottom) *bottom = s->bottom;
    return joined(s, at, top);
}

mx_size mx_sweeps_select(mx_sweeps *s, const float *v, const float *low, const float *e,
                         const float *ki, float vi, float ei, mx_size n, float *lanes) {
    mx_size half = own_rows(s, n);
    float gain;
    if (half < n) {
        s->v = (float *)v, s->low = low, s->e = e;
        s->ki = ki, s->vi = vi, s->ei = ei;
        s->above = lanes;
        begin(s, SELECT, half, n);
    }
    mx_smo_gains(v, low, e, ki, vi, ei, 0, half, lanes);
    mx_size at = mx_smo_largest(v, low, e, ki, vi, ei, half, lanes, &gain);
    if (half == n) return at;
    finish(s);
    if (at < 0 || s->at < 0) return at < 0 && s->at >= 0 ? half + s->at : at;
    return joined(s, at, &gain);
}

void mx_sweeps_apply(mx_sweeps *s, float *v, const float *const *rows, const float *c,
                     mx_size m, mx_size n) {
    mx_size half = own_rows(s, n);
    if (half < n) {
        s->v = v, s->rows = rows, s->c = c, s->m = m;
        begin(s, APPLY, half, n);
    }
    mx_smo_apply(v, rows, c, m, 0, half);
    if (half < n) finish(s);
}

int mx_sweeps_begin(mx_sweeps *s, void (*help)(void *task), void *task) {
    if (!is_there(s)) return 0;
    s->help = help, s->task = task, s->claimed = 0;
    begin(s, HELP, 0, 0);
    return 1;
}

mx_size mx_sweeps_claim(mx_sweeps *s) { return (mx_size)TAKE(s->claimed); }

void mx_sweeps_wait(mx_sweeps *s) { finish(s); }
