/* The loops of divergence.h. */
#include "divergence.h"
#include "fma.h"
#include "linalg.h"

double FK_LEVEL(fk_divergence_step)(ptrdiff_t d, ptrdiff_t J, const double *C, const double *g,
                                    const double *e, const double *w, double b, double gain,
                                    double most, double *step)
{
    double squares = 0;
    for (ptrdiff_t k = 0; k < d; k++) {
        double *restrict s = step + k * d;
        for (ptrdiff_t i = k; i < d; i++) s[i] = 0;
        for (ptrdiff_t j = 0; j < J; j++) {
            if (w[j] == 0) continue;
            const double a = w[j] * e[j * d + k];
            const double *restrict gj = g + j * d;
            for (ptrdiff_t i = k; i < d; i++) s[i] = fk_fma(a, gj[i], s[i]);
        }
        s[k] += b / C[k * d + k];
        for (ptrdiff_t i = k; i < d; i++) {
            double v = gain * s[i];
            v = v > most ? most : v;
            s[i] = v < -most ? -most : v;
        }
        squares += fk_square(d - k, s + k);
    }
    return squares;
}
