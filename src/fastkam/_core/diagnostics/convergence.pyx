"""Convergence and precision of draws: rank-normalized split R-hat, effective sizes, MCSE.

Every chain is split into halves. With z the normal scores of the ranks of the draws, and those of
|x - median| (folded),

    R-hat    = sqrt((n - 1 + n var(means of halves) / mean(variances in halves)) / n),
               the greater of that of z and that of the folded z
    ESS bulk = that of z
    ESS tail = the lesser of those of x <= q5 and of x <= q95
    MCSE     = sd / sqrt(ESS of x),   sqrt(var(s) / (4 variance ESS of s)),   s = (x - mean)^2

The error of the standard deviation uses the effective size of the squares: in antithetic chains,
such as those of Hamiltonian samplers, it is far smaller than that of x.

Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021). Rank-normalization,
folding, and localization: an improved R-hat. Bayesian Analysis 16, 667-718.
"""
from libc.math cimport INFINITY, NAN, fabs, frexp, isfinite, ldexp, log10, sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

cdef extern from "workspace.h" nogil:
    double *fk_doubles(size_t size)

cdef extern from "ranks.h" nogil:
    ctypedef struct Ranked "fk_ranked":
        uint64_t key, place
    uint64_t NO_PLACE "FK_NO_PLACE"
    uint64_t fk_key(double x)
    Ranked *fk_sort(Py_ssize_t n, Ranked *a, Ranked *other)
    double fk_quantile(Py_ssize_t n, const Ranked *ordered, double p)
    Py_ssize_t fk_keep_placed(Py_ssize_t n, Ranked *a)
    void fk_fold(Py_ssize_t m, const Ranked *ordered, Ranked *folded)
    void fk_score_table(Py_ssize_t m, double *table)
    void fk_scores(Py_ssize_t m, const Ranked *ordered, const double *table, double *z)

cdef extern from "autocovariance.h" nogil:
    enum:
        KINDS "FK_KINDS"
    ctypedef struct Wave "fk_wave":
        pass
    ctypedef struct Halves "fk_halves":
        Py_ssize_t n
        const double *z
        const double *x
        double low, high
        double mean[2][4]
    void fk_roots(Py_ssize_t n, double *w)
    void fk_add_chain(Py_ssize_t B, const double *w, const Halves *h, Wave *work, Wave *s)
    void fk_backward(Py_ssize_t n, const double *w, Wave *a)
    int fk_geyer(Py_ssize_t n, Py_ssize_t lags, const double *c, double variance_of_means,
                 double *tau)

COLUMNS = ("mean", "sd", "q5", "q95", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat")

cdef enum:
    N_COLUMNS = 9
    LEAST_DRAWS = 4                 # of which the halves of a chain have two each
    FIRST_LAGS = 256                # the window of lags
    WIDER = 8                       # the factor by which it is widened if it is not enough

cdef double LOW = 0.05, HIGH = 0.95
cdef double CORRELATED = 0.1        # an autocorrelation beyond which more lags are needed


cdef struct Work:
    Py_ssize_t chains, rows, half   # rows: draws a chain; half: those of half a chain
    double *x                       # all draws; those of the halves, chain by chain, are first
    double *z
    double *table
    Ranked *a
    Ranked *b
    Wave *waves                     # 3 x 2 lags, for the widest window so far
    double *roots
    double *means                   # of each kind of series in each half (2 chains, KINDS)
    double *c                       # autocovariances (lags, KINDS)
    Py_ssize_t room                 # the lags of that window
    bint r_hat                      # whether it is wanted
    bint sizes
    bint mcse_sd


def measure(const double[:, :, :] draws, *, bint r_hat=True, bint sizes=True, bint mcse_sd=True):
    """Return the statistics COLUMNS (9, d) of draws (chains, draws, d).

    Without `r_hat`, without `sizes` (effective sizes and Monte Carlo errors), or without `mcse_sd`,
    these are NaN and take no time.

    All are NaN for a coordinate with draws that are not finite; those computed from halves of
    chains are NaN for a coordinate that never moves and for fewer than four draws. R-hat is NaN for
    one chain, and infinite if no half of a chain moves but not all are equal.
    """
    cdef Py_ssize_t chains = draws.shape[0], rows = draws.shape[1], d = draws.shape[2], i
    table = np.full((N_COLUMNS, d), np.nan)
    cdef double[:, ::1] out = table
    cdef double column[N_COLUMNS]
    cdef Work w
    cdef int k, failed = 0
    if chains * rows == 0 or d == 0:
        return table
    with nogil:
        failed = begin(&w, chains, rows)
        w.r_hat, w.sizes, w.mcse_sd = r_hat, sizes, mcse_sd and sizes
        if not failed:
            for i in range(d):
                failed = one_coordinate(&w, draws[:, :, i], column)
                if failed:
                    break
                for k in range(N_COLUMNS):
                    out[k, i] = column[k]
        end(&w)
    if failed:
        raise MemoryError(f"no memory for the statistics of {chains} x {rows} draws")
    return table


cdef int begin(Work *w, Py_ssize_t chains, Py_ssize_t rows) noexcept nogil:
    """Allocate memory; return 1 if out of memory."""
    cdef Py_ssize_t n = chains * rows
    memset(w, 0, sizeof(Work))
    w.chains, w.rows, w.half = chains, rows, rows // 2
    w.x = <double *>malloc(n * sizeof(double))
    w.z = <double *>malloc(n * sizeof(double))
    w.table = <double *>malloc((n // 2 + 1) * sizeof(double))
    w.means = <double *>malloc(2 * chains * KINDS * sizeof(double))
    w.a = <Ranked *>malloc(n * sizeof(Ranked))
    w.b = <Ranked *>malloc(n * sizeof(Ranked))
    if not (w.x and w.z and w.table and w.means and w.a and w.b):
        return 1
    fk_score_table(2 * w.half * chains, w.table)
    return 0


cdef void end(Work *w) noexcept nogil:
    free(w.x)
    free(w.z)
    free(w.table)
    free(w.means)
    free(w.a)
    free(w.b)
    free(w.waves)
    free(w.roots)
    free(w.c)


cdef int widen(Work *w, Py_ssize_t lags) noexcept nogil:
    """Make room for a window of that number of lags, a power of two; return 1 if out of memory."""
    if lags == w.room:
        return 0
    free(w.waves)
    free(w.roots)
    free(w.c)
    w.waves = <Wave *>fk_doubles(6 * lags * sizeof(Wave) // sizeof(double))
    w.roots = <double *>malloc(2 * lags * sizeof(double))
    w.c = <double *>malloc(lags * KINDS * sizeof(double))
    w.room = lags
    if not (w.waves and w.roots and w.c):
        w.room = 0
        return 1
    fk_roots(2 * lags, w.roots)
    return 0


# ---- one coordinate ----


cdef int one_coordinate(Work *w, const double[:, :] draws, double *out) noexcept nogil:
    """Compute the statistics `out` (9,) of draws (chains, draws); return 1 if out of memory."""
    cdef Py_ssize_t n = w.chains * w.rows, m = 2 * w.chains * w.half
    cdef int exponent = 0, k
    cdef Ranked *ordered
    cdef double bulk, folded, second, fourth, low, high
    cdef double tau[KINDS]
    for k in range(N_COLUMNS):
        out[k] = NAN
    if not gather(w, draws, &exponent):
        return 0
    moments(n, w.x, &out[0], &out[1], &fourth)
    ordered = fk_sort(n, w.a, w.b)
    low, high = fk_quantile(n, ordered, LOW), fk_quantile(n, ordered, HIGH)
    out[2], out[3] = low, high
    m = fk_keep_placed(n, ordered)
    if w.rows >= LEAST_DRAWS and ordered[0].key != ordered[m - 1].key:
        if w.r_hat and w.chains > 1:
            fk_fold(m, ordered, w.b if ordered == w.a else w.a)
            fk_scores(m, w.b if ordered == w.a else w.a, w.table, w.z)
            folded = split_r_hat(w)
        fk_scores(m, ordered, w.table, w.z)
        if w.r_hat and w.chains > 1:
            bulk = split_r_hat(w)
            out[8] = folded if folded > bulk else bulk
        if w.sizes:
            if efficiencies(w, low, high, tau):
                return 1
            out[4] = out[1] / sqrt(m / tau[1])
            out[6] = m / tau[0]
            out[7] = m / (tau[2] if tau[2] > tau[3] else tau[3])
        if w.mcse_sd:
            second = variance(n, w.x, out[0])
            if efficiency_of_squares(w, out[0], second, fourth, &tau[1]):
                return 1
            out[5] = sqrt(fourth / (m / tau[1])) / (2 * sqrt(second))
    for k in range(6):
        out[k] = ldexp(out[k], exponent)
    return 0


cdef bint gather(Work *w, const double[:, :] draws, int *exponent) noexcept nogil:
    """Copy the draws, halves of chains first, in units of 2^exponent; return False if not finite.

    The exponent is 0 unless squares might overflow or vanish.
    """
    cdef Py_ssize_t c, i, n = w.chains * w.rows, middle = 2 * w.half * w.chains, at = 0
    cdef double most = 0, x
    for c in range(w.chains):
        for i in range(w.rows):
            x = draws[c, i]
            if not isfinite(x):
                return False
            if w.rows % 2 and i == w.half:
                w.x[middle + c] = x
            else:
                w.x[at] = x
                at += 1
            if fabs(x) > most:
                most = fabs(x)
    if not 1e-70 < most < 1e70:
        frexp(most, exponent)
        for i in range(n):
            w.x[i] = ldexp(w.x[i], -exponent[0])
    for i in range(n):
        w.a[i].key = fk_key(w.x[i])
        w.a[i].place = <uint64_t>i if i < middle else NO_PLACE
    return True


cdef void moments(Py_ssize_t n, const double *x, double *mean, double *sd,
                  double *fourth) noexcept nogil:
    """Compute the mean, sd (divisor n - 1), and the variance of (x - mean)^2 (divisor n)."""
    cdef Py_ssize_t i
    cdef double total = 0, v, q
    for i in range(n):
        total += x[i] - x[0]
    mean[0] = x[0] + total / n
    v = variance(n, x, mean[0])
    sd[0] = sqrt(v * n / (n - 1)) if n > 1 else NAN
    total = 0
    for i in range(n):
        q = (x[i] - mean[0]) * (x[i] - mean[0]) - v
        total += q * q
    fourth[0] = total / n


cdef double variance(Py_ssize_t n, const double *x, double mean) noexcept nogil:
    """Return the variance, with divisor n."""
    cdef Py_ssize_t i
    cdef double total = 0
    for i in range(n):
        total += (x[i] - mean) * (x[i] - mean)
    return total / n


cdef double mean_of(Py_ssize_t n, const double *x) noexcept nogil:
    """Return the mean, which is exact for equal numbers."""
    cdef Py_ssize_t i
    cdef double total = 0
    for i in range(n):
        total += x[i] - x[0]
    return x[0] + total / n


cdef double split_r_hat(const Work *w) noexcept nogil:
    """Return R-hat of z, and store the means of the halves in w.means."""
    cdef Py_ssize_t h, n = w.half, halves = 2 * w.chains
    cdef double within = 0, total = 0, between = 0, mean
    for h in range(halves):
        w.means[h] = mean_of(n, w.z + h * n)
        within += variance(n, w.z + h * n, w.means[h]) * n / (n - 1)
        total += w.means[h] - w.means[0]
    for h in range(halves):
        mean = w.means[h] - w.means[0] - total / halves
        between += mean * mean
    within /= halves
    between *= <double>n / (halves - 1)
    if within == 0:
        return INFINITY if between > 0 else NAN
    return sqrt((between / within + n - 1) / n)


# ---- effective sizes ----


cdef int efficiencies(Work *w, double low, double high, double *tau) noexcept nogil:
    """Compute tau (KINDS,) of the series, ESS = draws / tau; return 1 if out of memory."""
    cdef Py_ssize_t n = w.half, m = 2 * w.chains * n, lags = FIRST_LAGS
    cdef double spread[KINDS]
    cdef int k, done = 0
    cdef bint constant[KINDS]
    means_of_halves(w, low, high, spread, constant)
    if n > lags and correlation(w, lags) > CORRELATED:      # a narrow window would not suffice
        lags *= WIDER
    while done < KINDS:
        while lags // 2 >= n and lags > 2:      # no wider than there are lags
            lags //= 2
        if autocovariances(w, lags, low, high):
            return 1
        done = 0
        for k in range(KINDS):
            if constant[k]:
                tau[k] = 1
                done += 1
            elif fk_geyer(n, lags if lags < n else n, w.c + k, spread[k], &tau[k]):
                tau[k] = max(tau[k], 1 / log10(<double>m))
                done += 1
        lags *= WIDER
    return 0


cdef double correlation(const Work *w, Py_ssize_t lag) noexcept nogil:
    """Return the autocorrelation of z at a lag below the length of the halves."""
    cdef Py_ssize_t h, i, n = w.half
    cdef const double *z
    cdef double mean, product = 0, square = 0
    for h in range(2 * w.chains):
        z, mean = w.z + h * n, w.means[h * KINDS]
        for i in range(n - lag):
            product += (z[i] - mean) * (z[i + lag] - mean)
            square += (z[i] - mean) * (z[i] - mean)
    return product / square


cdef int efficiency_of_squares(Work *w, double mean, double variance, double fourth,
                               double *tau_of_squares) noexcept nogil:
    """Compute tau of (x - mean)^2, which replaces x in w; return 1 if out of memory."""
    cdef Py_ssize_t i, m = 2 * w.chains * w.half
    cdef double tau[KINDS]
    if not fourth > 1e-30 * variance * variance:    # the squares are equal up to rounding
        tau_of_squares[0] = 1
        return 0
    for i in range(m):
        w.x[i] = (w.x[i] - mean) / variance * (w.x[i] - mean)
    if efficiencies(w, -1.0, -1.0, tau):        # no square is below -1: no tails
        return 1
    tau_of_squares[0] = tau[1]
    return 0


cdef void means_of_halves(Work *w, double low, double high, double *spread,
                          bint *constant) noexcept nogil:
    """Set w.means of each kind of series, their variances, and whether a series is constant."""
    cdef Py_ssize_t n = w.half, halves = 2 * w.chains, h, i
    cdef double below[2]
    cdef double total[2]
    cdef double mean
    cdef int k
    cdef double *own
    total[0] = total[1] = 0
    for h in range(halves):
        own = w.means + h * KINDS
        below[0] = below[1] = 0
        for i in range(h * n, (h + 1) * n):
            below[0] += w.x[i] <= low
            below[1] += w.x[i] <= high
        own[0], own[1] = mean_of(n, w.z + h * n), mean_of(n, w.x + h * n)
        for k in range(2):
            own[2 + k] = below[k] / n
            total[k] += below[k]
    for k in range(KINDS):
        constant[k] = k > 1 and (total[k - 2] == 0 or total[k - 2] == halves * n)
        mean = spread[k] = 0
        for h in range(halves):
            mean += w.means[h * KINDS + k] - w.means[k]
        mean = w.means[k] + mean / halves
        for h in range(halves):
            spread[k] += (w.means[h * KINDS + k] - mean) * (w.means[h * KINDS + k] - mean)
        spread[k] /= halves - 1


cdef int autocovariances(Work *w, Py_ssize_t lags, double low, double high) noexcept nogil:
    """Set w.c, autocovariances up to a lag averaged over halves; return 1 if out of memory."""
    cdef Py_ssize_t c, i, n = w.half
    cdef Halves h
    cdef int k, half
    cdef double *found
    if widen(w, lags):
        return 1
    memset(w.waves, 0, 2 * lags * sizeof(Wave))
    for c in range(w.chains):
        h.n, h.z, h.x = n, w.z + 2 * c * n, w.x + 2 * c * n
        h.low, h.high = low, high
        for half in range(2):
            for k in range(KINDS):
                h.mean[half][k] = w.means[(2 * c + half) * KINDS + k]
        fk_add_chain(lags, w.roots, &h, w.waves + 2 * lags, w.waves)
    fk_backward(2 * lags, w.roots, w.waves)
    for i in range(lags):
        found = <double *>(w.waves + i)         # its real part comes first
        for k in range(KINDS):
            w.c[i * KINDS + k] = found[k] / (2.0 * lags) / n / (2 * w.chains)
    return 0
