/* Elementwise functions of vectors, for a few dozen dimensions or more; for fewer, the inline
 * functions of linalg.h are as fast. */
#ifndef FASTKAM_ELEMENTWISE_H
#define FASTKAM_ELEMENTWISE_H

#include "levels.h"

/* v_i += a s_i g_i, not fused; v does not overlap s or g */
FK_DISPATCH(void, fk_add_products,
            (ptrdiff_t d, double a, const double *s, const double *g, double *v))

/* fk_square and fk_all_finite of linalg.h */
FK_DISPATCH(double, fk_long_square, (ptrdiff_t d, const double *v))
FK_DISPATCH(int, fk_long_all_finite, (ptrdiff_t d, const double *v))

#endif
