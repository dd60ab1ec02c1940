/* The choice among the instruction sets of levels.h. */
#include "levels.h"

#include <stdlib.h>
#include <string.h>

static int best_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init(); /* this may run before the constructor that does so */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512bw") ? 2 : 1;
#else
    return 0;
#endif
}

int fk_level(void)
{
    const char *const names[] = {"base", "avx2", "avx512"}, *const name = getenv("FASTKAM_LEVEL");
    const int best = best_level();
    if (!name || !*name) return best;
    for (int i = 0; i <= best; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}
