/* Chooses among the instruction sets: what the processor has, or what is asked for. */
#include "decomposition.h"
#include "factor.h"
#include "kernel_pass.h"
#include "low_rank.h"

#include <string.h>

#define FK_DECLARE(level)                                                                         \
    void fk_kernel_pass_##level(const fk_kernel *, ptrdiff_t, ptrdiff_t, const double *,          \
                                const double *, double *, double *, double *);                  \
    extern const fk_factor fk_factor_##level;                                                      \
    extern const fk_decomposition fk_decomposition_##level;                                        \
    extern const fk_low_rank fk_low_rank_##level;
FK_DECLARE(base)
ptrdiff_t fk_kernel_pass_work_base(ptrdiff_t d);

void fk_kernel_weights_base(const fk_kernel *k, ptrdiff_t blocks, double *w);

void fk_kernel_weights(const fk_kernel *k, ptrdiff_t blocks, double *w)
{
    fk_kernel_weights_base(k, blocks, w);
}

ptrdiff_t fk_kernel_pass_work(ptrdiff_t d) { return fk_kernel_pass_work_base(d); }

#ifdef FK_X86
#include <cpuid.h>
FK_DECLARE(avx2)
FK_DECLARE(avx512)

/* 0 base, 1 AVX2, 2 AVX-512 (F and DQ): what the processor has and the system saves */
static int best_level(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0; /* OSXSAVE */
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (!(b & (1u << 5))) return 0;
    return (low & 0xe6) == 0xe6 && (b & (1u << 16)) && (b & (1u << 17)) ? 2 : 1;
}
#endif

/* 0, 1, 2 as named, the best where there is no name; -1 where the processor has not got it */
static int level_of(const char *name)
{
    int best = 0;
#ifdef FK_X86
    best = best_level();
#endif
    if (!*name) return best;
    const char *names[] = {"base", "avx2", "avx512"};
    for (int i = 0; i <= best; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

#ifdef FK_X86
#define FK_CHOOSE(f) {f##_base, f##_avx2, f##_avx512}
#define FK_CHOOSE_ADDRESS(f) {&f##_base, &f##_avx2, &f##_avx512}
#else
#define FK_CHOOSE(f) {f##_base}
#define FK_CHOOSE_ADDRESS(f) {&f##_base}
#endif

fk_kernel_pass_fn fk_kernel_pass_for(const char *level)
{
    const fk_kernel_pass_fn passes[] = FK_CHOOSE(fk_kernel_pass);
    const int i = level_of(level);
    return i < 0 ? NULL : passes[i];
}

const fk_factor *fk_factor_for(const char *level)
{
    const fk_factor *factors[] = FK_CHOOSE_ADDRESS(fk_factor);
    const int i = level_of(level);
    return i < 0 ? NULL : factors[i];
}

const fk_decomposition *fk_decomposition_for(const char *level)
{
    const fk_decomposition *found[] = FK_CHOOSE_ADDRESS(fk_decomposition);
    const int i = level_of(level);
    return i < 0 ? NULL : found[i];
}

const fk_low_rank *fk_low_rank_for(const char *level)
{
    const fk_low_rank *found[] = FK_CHOOSE_ADDRESS(fk_low_rank);
    const int i = level_of(level);
    return i < 0 ? NULL : found[i];
}
