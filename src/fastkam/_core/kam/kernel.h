/* The kernels of KAM, in the form for loops over a subsample.
 *
 * M_i = 2 grad_y k(y, z_i) = w_i D_i with D_i = z_i - y: the kernels differ only in the weight,
 *
 *     linear     k = y'z                      w = 2   (M_i = 2 z_i; H removes the shift by y)
 *     Gaussian   k = exp(-|D|^2 / 2 l^2)      w = 2 k / l^2
 *     Matern     u = sqrt(2 v) |D| / l        w = (4 v / l^2) c_v u^(v-1) K_(v-1)(u),
 *                                             c_v = 2^(1-v) / Gamma(v), v > 1
 */
#ifndef FASTKAM_KERNEL_H
#define FASTKAM_KERNEL_H

enum { FK_LINEAR, FK_GAUSSIAN, FK_MATERN, FK_MATERN_HALF };

/* e^u c_v u^(v-1) K_(v-1)(u) as polynomials, FK_CELLS to an octave of u; below the first octave the
 * limit at 0, with its correction a u^b. For v = 3/2, 5/2, ... (FK_MATERN_HALF) it is one
 * polynomial in u. */
enum { FK_CELLS = 8, FK_FIRST_OCTAVE = -24, FK_OCTAVES = 34 };

typedef struct {
    int kind;
    double length;       /* l */
    double order;        /* v */
    int degree;
    const double *table; /* (FK_OCTAVES FK_CELLS or 1, degree + 1) */
    double origin;       /* the limit at u = 0 */
    double a, b;         /* near 0: origin (1 - a u^b) */
} fk_kernel;

#endif
