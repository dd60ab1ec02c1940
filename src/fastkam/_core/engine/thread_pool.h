/* A pool of a few threads, which run task(0), ..., task(m - 1) with the caller.
 *
 * An idle helper polls for the next round for some microseconds, then sleeps. The caller never
 * waits for a helper that has not begun: it closes the round when every task is taken, and waits
 * for the helpers inside it. The locks are Python's; the threads are the system's (POSIX), since
 * Python's cannot be joined from C, and they run no Python. */
#ifndef FASTKAM_THREAD_POOL_H
#define FASTKAM_THREAD_POOL_H

#include <Python.h>
#include <pthread.h>
#include <time.h>

#define FK_HELPERS 63    /* at most this many */
#define FK_LOOKS 2000    /* polls before a helper sleeps: about 50 microseconds */
#define FK_CLOSED (1 << 30)
#define FK_STACK (8 << 20) /* the default of some systems, half a megabyte, can be too little */

typedef void (*fk_task)(int i, void *data);

typedef struct {
    struct fk_pool *pool;
    pthread_t thread;
    PyThread_type_lock wake; /* held, except while the helper is being woken */
    int sleeping;
} fk_helper;

typedef struct fk_pool {
    fk_task task;
    void *data;
    int m, next;  /* the number of tasks, and the next to be taken */
    int gate;     /* helpers inside the round, plus FK_CLOSED once it is closed */
    int round;    /* the number of rounds so far */
    int leaving;  /* the helpers are to end */
    int waiting;  /* the caller sleeps until the last helper has left the round */
    int helpers;
    PyThread_type_lock empty;
    fk_helper helper[FK_HELPERS];
} fk_pool;

static inline void fk_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline int fk_atomic_load(int *a) { return __atomic_load_n(a, __ATOMIC_SEQ_CST); }
static inline void fk_atomic_store(int *a, int v) { __atomic_store_n(a, v, __ATOMIC_SEQ_CST); }
static inline int fk_atomic_take(int *a) { return __atomic_exchange_n(a, 0, __ATOMIC_SEQ_CST); }

static inline void fk_share_out(fk_pool *c)
{
    for (int i; (i = __atomic_fetch_add(&c->next, 1, __ATOMIC_SEQ_CST)) < c->m;)
        c->task(i, c->data);
}

static inline int fk_enter_round(fk_pool *c)
{
    int inside = fk_atomic_load(&c->gate);
    while (!(inside & FK_CLOSED))
        if (__atomic_compare_exchange_n(&c->gate, &inside, inside + 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            return 1;
    return 0;
}

/* Return when there is a round other than `seen`, or when the helpers are to end. The helper and
 * the caller may reset `sleeping`: if the caller does, it releases `wake`, which must be acquired. */
static inline void fk_await_round(fk_helper *h, int seen)
{
    fk_pool *c = h->pool;
    for (int look = 0; look < FK_LOOKS; look++) {
        if (fk_atomic_load(&c->round) != seen) return;
        fk_relax();
    }
    fk_atomic_store(&h->sleeping, 1);
    if (fk_atomic_load(&c->round) != seen && fk_atomic_take(&h->sleeping)) return;
    PyThread_acquire_lock(h->wake, WAIT_LOCK);
}

static void *fk_help(void *data)
{
    fk_helper *h = (fk_helper *)data;
    fk_pool *c = h->pool;
    for (int seen = 0;;) {
        fk_await_round(h, seen);
        seen = fk_atomic_load(&c->round);
        if (fk_atomic_load(&c->leaving)) break;
        if (!fk_enter_round(c)) continue;
        fk_share_out(c);
        if (__atomic_sub_fetch(&c->gate, 1, __ATOMIC_SEQ_CST) == FK_CLOSED
            && fk_atomic_take(&c->waiting))
            PyThread_release_lock(c->empty);
    }
    return 0;
}

/* Start a helper's thread; return 0, or another number if the system cannot. */
static inline int fk_start_thread(fk_helper *h)
{
    pthread_attr_t attributes;
    int missing;
    if (pthread_attr_init(&attributes)) return 1;
    pthread_attr_setstacksize(&attributes, FK_STACK);
    missing = pthread_create(&h->thread, &attributes, fk_help, h);
    pthread_attr_destroy(&attributes);
    return missing;
}

static inline void fk_call_round(fk_pool *c)
{
    __atomic_add_fetch(&c->round, 1, __ATOMIC_SEQ_CST);
    for (int j = 0; j < c->helpers; j++)
        if (fk_atomic_take(&c->helper[j].sleeping)) PyThread_release_lock(c->helper[j].wake);
}

/* Run task(0), ..., task(m - 1); all are done when this returns. */
static inline void fk_run_tasks(fk_pool *c, int m, fk_task task, void *data)
{
    if (m < 2) {
        if (m) task(0, data);
        return;
    }
    c->task = task, c->data = data, c->m = m;
    fk_atomic_store(&c->next, 0);
    fk_atomic_store(&c->gate, 0);
    fk_call_round(c);
    fk_share_out(c);
    __atomic_or_fetch(&c->gate, FK_CLOSED, __ATOMIC_SEQ_CST);
    for (int look = 0; fk_atomic_load(&c->gate) != FK_CLOSED; look++) {
        fk_relax();
        if (look < FK_LOOKS) continue;
        fk_atomic_store(&c->waiting, 1);
        if (fk_atomic_load(&c->gate) == FK_CLOSED && fk_atomic_take(&c->waiting)) return;
        /* this may be a late signal from a helper that has left an earlier round: poll again */
        PyThread_acquire_lock(c->empty, WAIT_LOCK);
    }
}

static inline PyThread_type_lock fk_held_lock(void)
{
    PyThread_type_lock lock = PyThread_allocate_lock();
    if (lock) PyThread_acquire_lock(lock, WAIT_LOCK);
    return lock;
}

/* Allocate the missing locks of `helpers` threads; return 0, or -1 if out of memory. The pool must
 * be zero-initialized. */
static inline int fk_prepare_pool(fk_pool *c, int helpers)
{
    if (!c->empty) c->empty = fk_held_lock();
    c->gate = FK_CLOSED;
    for (int j = 0; j < helpers; j++) {
        fk_helper *h = &c->helper[j];
        h->pool = c;
        if (!h->wake) h->wake = fk_held_lock();
        if (!h->wake) return -1;
    }
    return c->empty ? 0 : -1;
}

/* Start up to `helpers` of the prepared threads; fewer if the system starts no more. */
static inline void fk_start_pool(fk_pool *c, int helpers)
{
    c->round = c->leaving = 0;
    c->helpers = 0;
    while (c->helpers < helpers && !fk_start_thread(&c->helper[c->helpers])) c->helpers++;
}

/* End all helpers, and wait until they have ended. */
static inline void fk_end_pool(fk_pool *c)
{
    fk_atomic_store(&c->leaving, 1);
    fk_call_round(c);
    for (int j = 0; j < c->helpers; j++) pthread_join(c->helper[j].thread, NULL);
    c->helpers = 0;
}

static inline void fk_free_pool(fk_pool *c)
{
    if (c->empty) PyThread_free_lock(c->empty);
    for (int j = 0; j < FK_HELPERS; j++)
        if (c->helper[j].wake) PyThread_free_lock(c->helper[j].wake);
}

/* Return the time in seconds. */
static inline double fk_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
