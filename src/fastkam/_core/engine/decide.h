/* The decision of every Metropolis step and swap, for one chain and for many. */
#ifndef FASTKAM_DECIDE_H
#define FASTKAM_DECIDE_H

#include <math.h>

/* the log ratio, or -infinity if it is not a number (a proposal density has overflowed) */
static inline double fk_valid(double log_ratio)
{
    return log_ratio == log_ratio ? log_ratio : -INFINITY;
}

/* whether E = -log U > -log ratio, which has probability min(1, ratio) */
static inline int fk_accepts(double E, double log_ratio)
{
    return E > -log_ratio;
}

#endif
