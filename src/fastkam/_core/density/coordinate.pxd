"""One coordinate x of z: the transform, its slope and its inverse; see space.pyx."""
from libc.math cimport INFINITY, NAN, exp, fabs, floor, isfinite, log, log1p, nextafter

cdef enum:
    OUTSIDE = 1             # the point is beyond the bounds

cdef enum:                  # kinds of transforms; the first six are of one coordinate
    IDENTITY, LOG, UPPER, INTERVAL, PERIODIC, REFLECT, SIMPLEX, ORDERED, CORRELATION, PYTHON

cdef enum:                  # which log distances to the bounds a prior reads
    BELOW = 1
    ABOVE = 2

cdef enum:
    FAR_OUT = 690           # |z| from which on exp(-|z|) loses digits, or is 0

cdef struct Segment:        # the transform of coordinates that are alike, or of one vector
    int kind
    int inner               # kind of the elements of an ordered vector
    int logs                # BELOW | ABOVE, for coordinates at hard bounds
    Py_ssize_t z            # where its coordinates begin in z and x, and how many there are
    Py_ssize_t x
    Py_ssize_t n_z
    Py_ssize_t n_x
    double low
    double high
    double width            # high - low
    double log_width
    double spread           # sd of the normal density g of a coordinate that repeats
    double log_height       # log(w max g)
    void *transform         # the Callback of a transform in Python


cdef inline double within(double x, double low, double high) noexcept nogil:
    """Return x, moved inward by one rounding error if it is on a finite edge of (low, high)."""
    if x <= low > -INFINITY:
        return nextafter(low, INFINITY)
    if x >= high < INFINITY:
        return nextafter(high, -INFINITY)
    return x


cdef inline double folded(const Segment *s, double z, double *sign) noexcept nogil:
    """Return z reflected into [low, high], and write the sign of the slope there."""
    cdef double t = z - s.low
    sign[0] = 1.0
    if not isfinite(z):
        return NAN
    t -= 2 * s.width * floor(t / (2 * s.width))
    if t > s.width:
        t = 2 * s.width - t
        sign[0] = -1.0
    return min(max(s.low + t, s.low), s.high)


cdef inline double wrapped(const Segment *s, double z) noexcept nogil:
    """Return z wrapped into [low, high)."""
    cdef double x
    if s.low <= z < s.high:
        return z
    if not isfinite(z):
        return NAN
    x = s.low + (z - s.low - s.width * floor((z - s.low) / s.width))
    return x if s.low <= x < s.high else s.low


cdef inline double from_middle(const Segment *s, double z) noexcept nogil:
    """Return the distance of z from the middle of [low, high), in units of the spread."""
    return (z - s.low - 0.5 * s.width) / s.spread


cdef inline double log_weight(const Segment *s, double z) noexcept nogil:
    """Return log(w g(z)), see space.pyx."""
    cdef double u = from_middle(s, z)
    return s.log_height - 0.5 * u * u


cdef inline void distances(const Segment *s, double x, double *below, double *above) noexcept nogil:
    """Compute log(x - low) and log(high - x), if a prior reads them."""
    if s.logs & BELOW:
        below[0] = log(x - s.low)
    if s.logs & ABOVE:
        above[0] = log(s.high - x)


cdef inline int forward(int kind, const Segment *s, double z, double *x, double *below,
                        double *above, double *log_jacobian) noexcept nogil:
    """Compute x and its log distances, and add log |dx/dz|; return OUTSIDE beyond the bounds."""
    cdef double e, p, q, w, log_p, log_q
    if kind == IDENTITY:
        x[0] = z
        if not s.low <= z <= s.high:
            return OUTSIDE
        distances(s, z, below, above)
    elif kind == LOG:
        x[0] = within(s.low + exp(z), s.low, INFINITY)
        below[0] = z
        log_jacobian[0] += z
    elif kind == UPPER:
        x[0] = within(s.high - exp(-z), -INFINITY, s.high)
        above[0] = -z
        log_jacobian[0] -= z
    elif kind == INTERVAL:
        e = exp(-fabs(z))
        p = 1 / (1 + e)
        q = e * p                               # the smaller of s and 1 - s
        log_p = -log1p(e)
        log_q = log_p - fabs(z)
        w = s.width * q if fabs(z) < FAR_OUT else exp(s.log_width - fabs(z))
        if z >= 0:
            x[0] = s.high - w
            below[0], above[0] = s.log_width + log_p, s.log_width + log_q
        else:
            x[0] = s.low + w
            below[0], above[0] = s.log_width + log_q, s.log_width + log_p
        x[0] = within(x[0], s.low, s.high)
        log_jacobian[0] += s.log_width + log_p + log_q
    else:
        x[0] = wrapped(s, z) if kind == PERIODIC else folded(s, z, &e)
        distances(s, x[0], below, above)
        log_jacobian[0] += log_weight(s, z)
    return 0 if isfinite(x[0]) else OUTSIDE


cdef inline double near_slope(const Segment *s, double x, double dx, double dbelow,
                              double dabove) noexcept nogil:
    """Return df/dx of f(x, below, above)."""
    if dbelow != 0:
        dx += dbelow / (x - s.low)
    if dabove != 0:
        dx -= dabove / (s.high - x)
    return dx


cdef inline double backward(int kind, const Segment *s, double z, double x, double dx,
                            double dbelow, double dabove) noexcept nogil:
    """Return d/dz of f(x, below, above) + log |dx/dz|."""
    cdef double e, p, q, w
    if kind == IDENTITY:
        return near_slope(s, x, dx, dbelow, dabove)
    if kind == LOG:
        return dx * exp(z) + dbelow + 1
    if kind == UPPER:
        return dx * exp(-z) - dabove - 1
    if kind == INTERVAL:
        e = exp(-fabs(z))
        p = 1 / (1 + e)
        q = e * p
        if z < 0:
            p, q = q, p                         # s and 1 - s
        w = dx * s.width * p * q if fabs(z) < FAR_OUT else dx * exp(s.log_width - fabs(z))
        return w + dbelow * q - dabove * p + q - p
    e = 1.0
    if kind == REFLECT:
        folded(s, z, &e)
    return e * near_slope(s, x, dx, dbelow, dabove) - from_middle(s, z) / s.spread


cdef inline int inverse(int kind, const Segment *s, double x, double *z) noexcept nogil:
    """Compute z from x; return OUTSIDE if x is invalid."""
    if not (s.low <= x <= s.high and isfinite(x)):
        return OUTSIDE
    if kind == LOG:
        z[0] = log(x - s.low)
    elif kind == UPPER:
        z[0] = -log(s.high - x)
    elif kind == INTERVAL:
        z[0] = log(x - s.low) - log(s.high - x)
    else:
        z[0] = x
    return 0 if isfinite(z[0]) else OUTSIDE
