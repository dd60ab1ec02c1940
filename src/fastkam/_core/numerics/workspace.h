/* Work memory for calls that may overlap: each takes a place of its own, whose memory is allocated
 * at its first use and then kept. Beyond FK_PLACES calls at once, it is allocated for each call. */
#ifndef FASTKAM_WORKSPACE_H
#define FASTKAM_WORKSPACE_H

#include <stdlib.h>

#define FK_PLACES 64
#define FK_ALIGNMENT 64 /* BLAS may round by alignment: every place has the same */

typedef struct {
    size_t size; /* doubles, a multiple of 8 */
    unsigned char busy[FK_PLACES];
    double *memory[FK_PLACES];
} fk_workspace;

static inline double *fk_doubles(size_t size)
{
    return (double *)aligned_alloc(FK_ALIGNMENT, size * sizeof(double));
}

/* memory for one call, or NULL if out of memory; `place` is for fk_leave */
static inline double *fk_enter(fk_workspace *w, int *place)
{
    for (int i = 0; i < FK_PLACES; i++)
        if (!__atomic_test_and_set(&w->busy[i], __ATOMIC_ACQUIRE)) {
            if (!w->memory[i]) w->memory[i] = fk_doubles(w->size);
            *place = i;
            return w->memory[i];
        }
    *place = FK_PLACES;
    return fk_doubles(w->size);
}

static inline void fk_leave(fk_workspace *w, int place, double *memory)
{
    if (place == FK_PLACES)
        free(memory);
    else
        __atomic_clear(&w->busy[place], __ATOMIC_RELEASE);
}

static inline void fk_free_workspace(fk_workspace *w)
{
    for (int i = 0; i < FK_PLACES; i++) free(w->memory[i]);
}

#endif
