/* Functions that are compiled once for each instruction set, and chosen when a module is loaded.
 *
 * A loop over many numbers is written in a .c file that src/fastkam/meson.build lists. Every such
 * file is compiled for each instruction set, with FK_SUFFIX its name (_base, _avx2, _avx512), and
 * defines FK_LEVEL(f). The header declares f with FK_DISPATCH, and callers write f(...), a call
 * through a pointer. Within these files the version for the same set is called, as FK_LEVEL(f).
 *
 * A function that takes only some nanoseconds is static inline in a header instead (linalg.h,
 * step.pxd): a call through a pointer would cost more than longer vectors save.
 *
 * The attribute target_clones would choose in the same way, but only GCC has it, not for every C
 * library, and a function cannot ask which of its clones it is: the length of its vectors (vector.h)
 * could not depend on the set. FASTKAM_LEVEL would not reach it either.
 *
 * Every set gives the same bits: products are fused with sums where the source says so (fma.h), and
 * never by the compiler, and every sum has a fixed order. */
#ifndef FASTKAM_LEVELS_H
#define FASTKAM_LEVELS_H

#include <stddef.h>

#define FK_LANES 8 /* points and rows are in blocks of 8, whatever the machine's vectors are */

/* 0 base, 1 AVX2, 2 AVX-512: the best that the processor has, or what FASTKAM_LEVEL names in the
 * environment; -1 if the processor has no such set */
int fk_level(void);

/* FK_ONE_LEVEL: a build without the others (tests/twins/build.py) */
#define FK_JOIN_(a, b) a##b
#define FK_JOIN(a, b) FK_JOIN_(a, b)
#define FK_LEVEL(name) FK_JOIN(name, FK_SUFFIX)

#if defined(FK_SUFFIX)
#define FK_DISPATCH(result, name, arguments) result FK_LEVEL(name) arguments;
#elif defined(__x86_64__) && !defined(FK_ONE_LEVEL)
#define FK_DISPATCH(result, name, arguments)                                                      \
    result name##_base arguments;                                                                 \
    result name##_avx2 arguments;                                                                 \
    result name##_avx512 arguments;                                                               \
    static result(*name) arguments;                                                               \
    __attribute__((constructor)) static void name##_choose(void)                                  \
    {                                                                                             \
        const int level = fk_level();                                                             \
        name = level == 2 ? name##_avx512 : level == 1 ? name##_avx2 : name##_base;               \
    }
#else
#define FK_DISPATCH(result, name, arguments)                                                      \
    result name##_base arguments;                                                                 \
    static result(*const name) arguments = name##_base;
#endif

#endif
