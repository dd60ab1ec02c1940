/* BridgeStan's C interface over a model by hand: eight schools, and a matrix of normals.
 *
 *     parameters { real mu; real<lower=0> tau; vector[8] theta; matrix[2, 3] B; }
 *     transformed parameters { real half = tau / 2; matrix[2, 3] twice = 2 * B; }
 *     generated quantities { real noise; }         // uniform, from the generator
 *
 * Matrices are in column-major order. mu above 50 is an error, as is a model with "bad" data.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIM 16
static const double Y[8] = {28, 8, -3, 7, -1, 1, 18, 12}, S[8] = {15, 10, 16, 11, 9, 11, 10, 18};
static const double LOG_2PI = 1.8378770664093454836;

typedef struct { int seed; } bs_model;
typedef struct { unsigned state; } bs_rng;

static int fail(char **error, const char *text)
{
    if (error) {
        *error = malloc(strlen(text) + 1);
        strcpy(*error, text);
    }
    return -1;
}

bs_model *bs_model_construct(const char *data, unsigned seed, char **error)
{
    if (data && strstr(data, "bad")) {
        fail(error, "Exception: variable y does not exist; processing stage=data initialization");
        return NULL;
    }
    bs_model *m = malloc(sizeof *m);
    m->seed = (int)seed;
    return m;
}

void bs_model_destruct(bs_model *m) { free(m); }
void bs_free_error_msg(char *text) { free(text); }
const char *bs_name(const bs_model *m) { return "schools_model"; }
const char *bs_model_info(const bs_model *m) { return "Stan C++ Defines:\n\tSTAN_THREADS=true\n"; }

const char *bs_param_names(const bs_model *m, bool tp, bool gq)
{
#define PARAMETERS "mu,tau,theta.1,theta.2,theta.3,theta.4,theta.5,theta.6,theta.7,theta.8," \
                   "B.1.1,B.2.1,B.1.2,B.2.2,B.1.3,B.2.3"
    return tp && gq ? PARAMETERS ",half,twice.1.1,twice.2.1,twice.1.2,twice.2.2,twice.1.3,"
                                 "twice.2.3,noise"
                    : PARAMETERS;
}

int bs_param_num(const bs_model *m, bool tp, bool gq) { return tp && gq ? DIM + 8 : DIM; }
int bs_param_unc_num(const bs_model *m) { return DIM; }

bs_rng *bs_rng_construct(unsigned seed, char **error)
{
    bs_rng *r = malloc(sizeof *r);
    r->state = seed;
    return r;
}

void bs_rng_destruct(bs_rng *r) { free(r); }

int bs_param_constrain(const bs_model *m, bool tp, bool gq, const double *z, double *x, bs_rng *rng,
                       char **error)
{
    memcpy(x, z, DIM * sizeof(double));
    x[1] = exp(z[1]);
    if (tp && gq) {
        if (!rng)
            return fail(error, "Exception: no generator");
        x[DIM] = x[1] / 2;
        for (int i = 0; i < 6; i++)
            x[DIM + 1 + i] = 2 * x[10 + i];
        rng->state = rng->state * 1664525u + 1013904223u;
        x[DIM + 7] = rng->state / 4294967296.0;
    }
    return 0;
}

int bs_param_unconstrain(const bs_model *m, const double *x, double *z, char **error)
{
    if (!(x[1] > 0))
        return fail(error, "Exception: lub_free: Positive variable is 0, but must be positive");
    memcpy(z, x, DIM * sizeof(double));
    z[1] = log(x[1]);
    return 0;
}

static double normal(double x, double mean, double sd)
{
    double e = (x - mean) / sd;
    return -0.5 * e * e - log(sd) - 0.5 * LOG_2PI;
}

int bs_log_density_gradient(const bs_model *m, bool propto, bool jacobian, const double *z,
                            double *lp, double *grad, char **error)
{
    double mu = z[0], tau = exp(z[1]);
    if (mu > 50)
        return fail(error, "Exception: normal_lpdf: Location parameter is too large");
    memset(grad, 0, DIM * sizeof(double));
    *lp = normal(mu, 0, 5) + log(2 / (M_PI * 5 * (1 + tau * tau / 25))) + (jacobian ? z[1] : 0);
    grad[0] = -mu / 25;
    grad[1] = -2 * tau * tau / (25 + tau * tau) + (jacobian ? 1 : 0);
    for (int i = 0; i < 8; i++) {
        double theta = z[2 + i], e = (theta - mu) / tau;
        *lp += normal(theta, mu, tau) + normal(Y[i], theta, S[i]);
        grad[0] += e / tau;
        grad[1] += e * e - 1;
        grad[2 + i] = -e / tau + (Y[i] - theta) / (S[i] * S[i]);
    }
    for (int i = 10; i < DIM; i++) {
        *lp += normal(z[i], 0, 1);
        grad[i] = -z[i];
    }
    return 0;
}

int bs_log_density(const bs_model *m, bool propto, bool jacobian, const double *z, double *lp,
                   char **error)
{
    double grad[DIM];
    return bs_log_density_gradient(m, propto, jacobian, z, lp, grad, error);
}
