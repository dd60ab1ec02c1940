/* Operations on all chains of a lockstep at once (lockstep.pyx). */
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

/* row r of `from` (rows, stride) has d numbers of each of n chains: they are copied to the r-th row
 * at to[k], which is advanced past the last row */
FK_DISPATCH(void, fk_deal_rows,
            (ptrdiff_t n, ptrdiff_t rows, ptrdiff_t d, ptrdiff_t stride, const double *from,
             double **to))

/* the same for one byte of each chain */
FK_DISPATCH(void, fk_deal_bytes,
            (ptrdiff_t n, ptrdiff_t rows, ptrdiff_t stride, const signed char *from,
             signed char **to))

/* y = x + scale e for rows (n, d), each with its own scale (n,) */
FK_DISPATCH(void, fk_step_by,
            (ptrdiff_t n, ptrdiff_t d, const double *scale, const double *x, const double *e,
             double *y))

#endif
