/* Chooses the fused kernel pass for this processor, once. */
#include "kernel_pass.h"

#include <string.h>

#define FK_DECLARE(level)                                                                         \
    void fk_kernel_pass_##level(const fk_kernel *, ptrdiff_t, ptrdiff_t, const double *,          \
                                const double *, double *, double *, double *);
FK_DECLARE(base)
ptrdiff_t fk_kernel_pass_work_base(ptrdiff_t d);

void fk_kernel_weights_base(const fk_kernel *k, double *w);

void fk_kernel_weights(const fk_kernel *k, double *w) { fk_kernel_weights_base(k, w); }

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

fk_kernel_pass_fn fk_kernel_pass_for(const char *level)
{
#ifdef FK_X86
    const int best = best_level();
    if (best >= 2 && (!*level || !strcmp(level, "avx512"))) return fk_kernel_pass_avx512;
    if (best >= 1 && (!*level || !strcmp(level, "avx2"))) return fk_kernel_pass_avx2;
#endif
    return !*level || !strcmp(level, "base") ? fk_kernel_pass_base : NULL;
}
