/* What is done with all chains of a lockstep at once (lockstep.pyx). */
#ifndef FASTKAM_TOGETHER_H
#define FASTKAM_TOGETHER_H

#include "levels.h"

/* whether all n codes are 0 and all values finite */
FK_DISPATCH(int, fk_all_good, (ptrdiff_t n, const int *codes, const double *values))

/* ratio = log pi(y) - log pi(x) + log_q, -inf in place of NaN; accepted where E > -ratio */
FK_DISPATCH(void, fk_decide,
            (ptrdiff_t n, const double *logp_x, const double *logp_y, const double *log_q,
             const double *E, double *log_ratio, signed char *accepted))

/* counts += accepted */
FK_DISPATCH(void, fk_count, (ptrdiff_t n, const signed char *accepted, int64_t *counts))

/* where accepted, row k of `to` (n, d) becomes that of `from` */
FK_DISPATCH(void, fk_move,
            (ptrdiff_t n, ptrdiff_t d, const signed char *accepted, const double *from, double *to))

/* `to` (n, d) becomes every stride-th row of `from`; a row has d numbers */
FK_DISPATCH(void, fk_gather_rows,
            (ptrdiff_t n, ptrdiff_t d, ptrdiff_t stride, const double *from, double *to))

#endif
