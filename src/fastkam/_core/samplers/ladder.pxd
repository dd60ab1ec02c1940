"""The ladder of inverse temperatures, 1 = beta_0 > beta_1 > ... >= 0, and its tuning.

The rejection rates r_k of swaps between neighbors add up to the barrier

    Lambda(beta_k) = r_0 + ... + r_k-1,

and new rungs are put at equal distances in Lambda, which is linear between the old ones: then all
neighbors swap equally often.

Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible parallel
tempering. Journal of the Royal Statistical Society B 84, 321-350. Algorithm 4.
"""
from fastkam._core.linalg.dense cimport copy

cdef enum:
    MOST_RUNGS = 64         # room on the stack


cdef inline void tune_ladder(int rungs, const double *rejections, double *ladder) noexcept nogil:
    """Tune all rungs but the first and the last; rungs <= MOST_RUNGS."""
    cdef int r, s = 0
    cdef double[MOST_RUNGS] old
    cdef double[MOST_RUNGS] barrier
    cdef double at
    copy(rungs, ladder, &old[0])
    barrier[0] = 0
    for r in range(rungs - 1):
        # at least 1e-3: the barrier must increase to be invertible
        barrier[r + 1] = barrier[r] + max(rejections[r], 1e-3)
    for r in range(1, rungs - 1):
        at = barrier[rungs - 1] * r / (rungs - 1)
        while barrier[s + 1] < at:
            s += 1
        ladder[r] = old[s] + (old[s + 1] - old[s]) * (at - barrier[s]) / (
            barrier[s + 1] - barrier[s])
