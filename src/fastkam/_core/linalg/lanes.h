/* Eight lanes: what points stand in blocks of, and sums run over, whatever the machine's vectors. */
#ifndef FASTKAM_LANES_H
#define FASTKAM_LANES_H

#define FK_LANES 8
#define FK_INLINE static inline __attribute__((always_inline))

/* the sum of 8 lanes, in pairs: always in this order */
FK_INLINE double fk_sum_lanes(const double *p)
{
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

#endif
