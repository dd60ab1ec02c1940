/* The floor of a random walk on the two-mode target: a bare loop with the same draws, the same
 * density and the same decision, storing the draws; nothing is counted, checked or learned. */
#include <Python.h>

#include <math.h>
#include <stdint.h>

#include "numpy/random/bitgen.h"
#include "numpy/random/distributions.h"

static inline double two_mode(double a, double b)
{
    /* log sum_k exp(c_k - |x - m_k|^2 / (2 v_k)); exp(-38) changes no bit of a sum above 1 */
    const double c1 = -0.6931471805599453 - 1.8378770664093453 - 0.5 * -1.3862943611198906;
    const double c2 = -0.6931471805599453 - 1.8378770664093453 - 0.5 * 1.3862943611198906;
    const double t1 = c1 - ((a + 8) * (a + 8) + b * b);
    const double t2 = c2 - 0.25 * ((a - 8) * (a - 8) + b * b);
    const double high = t1 > t2 ? t1 : t2, low = t1 > t2 ? t2 : t1;
    if (low - high <= -38) return high;
    return high + log(1 + exp(low - high));
}

void walk(void *bitgen, int64_t n, double scale, double *x0, double *draws)
{
    bitgen_t *rng = bitgen;
    double x[2] = {x0[0], x0[1]}, logp = two_mode(x[0], x[1]);
    for (int64_t i = 0; i < n; i++) {
        const double y0 = x[0] + scale * random_standard_normal(rng);
        const double y1 = x[1] + scale * random_standard_normal(rng);
        const double E = random_standard_exponential(rng);
        const double logp_y = two_mode(y0, y1);
        if (E > -(logp_y - logp)) {
            x[0] = y0;
            x[1] = y1;
            logp = logp_y;
        }
        draws[2 * i] = x[0];
        draws[2 * i + 1] = x[1];
    }
}

/* the same density in SciPy's signature, for a target given as a C pointer */
double two_mode_density(int n, double *x, void *user_data) { return two_mode(x[0], x[1]); }

/* a standard normal, the same way */
double normal_density(int n, double *x, void *user_data)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return -0.5 * sum;
}
