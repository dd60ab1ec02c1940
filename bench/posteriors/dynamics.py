"""Differential equations. Rates, initial values and noise are sampled as their logarithms."""

import math

import numpy as np

from bench.posteriors.posterior import posterior

# ---- logistic growth, by its closed form ----

TIMES = np.linspace(0, 20, 25)
R, K, N0, NOISE = 0.5, 80.0, 4.0, 5.0
GROWN = K / (1 + (K / N0 - 1) * np.exp(-R * TIMES))
GROWN = GROWN + NOISE * np.random.default_rng(11).standard_normal(len(TIMES))
GROWTH_PRIOR = np.array([[-1.0, 1.0], [4.0, 1.0], [1.0, 1.0], [1.0, 1.0]])


@posterior("logistic growth", [-1.0, 4.0, 0.0, 1.0])
def growth(x, gradient):
    """y ~ N(n(t), s^2), n' = r n (1 - n / k); x = log (r, k, n(0), s), normal priors."""
    r, k, n0, s = np.exp(x)
    z = (x - GROWTH_PRIOR[:, 0]) / GROWTH_PRIOR[:, 1]
    decay = np.exp(-r * TIMES)
    below = 1 + (k / n0 - 1) * decay
    n = k / below
    e = (GROWN - n) / s
    value = -0.5 * (e @ e + z @ z) - len(e) * x[3]
    if not gradient:
        return value
    g_n = e / s                                     # derivative by n
    by_log_r = n / below * (k / n0 - 1) * decay * r * TIMES
    by_log_k = n - n / below * (k / n0) * decay
    by_log_n0 = n / below * (k / n0) * decay
    g = np.array([g_n @ by_log_r, g_n @ by_log_k, g_n @ by_log_n0, e @ e - len(e)])
    return value, g - z / GROWTH_PRIOR[:, 1]


# ---- two species, or susceptible and infected, in logarithms ----


class Interaction:
    """p' = a - b e^q, q' = d e^p - c by Runge-Kutta steps of order 4, and the adjoint of them."""

    def __init__(self, theta, p, q, intervals, steps, h):
        """theta = (a, b, c, d); values of p and q after each interval of `steps` steps of h."""
        self.theta, self.h, self.steps, self.path = theta, h, steps, []
        self.p, self.q = [p], [q]
        a, b, c, d = theta
        exp, half = math.exp, 0.5 * h
        for _ in range(intervals):
            for _ in range(steps):
                P1, Q1 = exp(p), exp(q)
                k1, m1 = a - b * Q1, d * P1 - c
                P2, Q2 = exp(p + half * k1), exp(q + half * m1)
                k2, m2 = a - b * Q2, d * P2 - c
                P3, Q3 = exp(p + half * k2), exp(q + half * m2)
                k3, m3 = a - b * Q3, d * P3 - c
                P4, Q4 = exp(p + h * k3), exp(q + h * m3)
                self.path.append((P1, Q1, P2, Q2, P3, Q3, P4, Q4))
                p += h / 6 * (k1 + 2 * (k2 + k3) + a - b * Q4)
                q += h / 6 * (m1 + 2 * (m2 + m3) + d * P4 - c)
            self.p.append(p)
            self.q.append(q)

    def back(self, g_p, g_q):
        """Gradient by (a, b, c, d, p(0), q(0)), given that by the values (intervals + 1,)."""
        _, b, _, d = self.theta
        h, path = self.h, self.path
        u, v = g_p[-1], g_q[-1]                     # adjoints of p and q
        g_a = g_b = g_c = g_d = 0.0
        at = len(path)
        for i in range(len(g_p) - 2, -1, -1):
            for _ in range(self.steps):
                at -= 1
                P1, Q1, P2, Q2, P3, Q3, P4, Q4 = path[at]
                # adjoints of the slopes k4 ... k1 of p and m4 ... m1 of q, each of which depends
                # on the stage's p by d P in m, and on its q by -b Q in k
                k4, m4 = h / 6 * u, h / 6 * v
                s4, r4 = d * P4 * m4, -b * Q4 * k4
                k3, m3 = 2 * k4 + h * s4, 2 * m4 + h * r4
                s3, r3 = d * P3 * m3, -b * Q3 * k3
                k2, m2 = 2 * k4 + 0.5 * h * s3, 2 * m4 + 0.5 * h * r3
                s2, r2 = d * P2 * m2, -b * Q2 * k2
                k1, m1 = k4 + 0.5 * h * s2, m4 + 0.5 * h * r2
                s1, r1 = d * P1 * m1, -b * Q1 * k1
                u += s1 + s2 + s3 + s4
                v += r1 + r2 + r3 + r4
                g_a += k1 + k2 + k3 + k4
                g_c -= m1 + m2 + m3 + m4
                g_b -= Q1 * k1 + Q2 * k2 + Q3 * k3 + Q4 * k4
                g_d += P1 * m1 + P2 * m2 + P3 * m3 + P4 * m4
            u += g_p[i]
            v += g_q[i]
        return np.array([g_a, g_b, g_c, g_d, u, v])


def impossible(x, gradient):
    """The values where the solution overflows."""
    return (-np.inf, np.zeros(len(x))) if gradient else -np.inf


YEARS = 20
TRUE_LV = np.log([0.55, 0.03, 0.8, 0.025, 33.0, 6.0])
LV_PRIOR = np.array([[0, 1.0], [-3, 1], [0, 1], [-3, 1], [3, 1], [3, 1], [-1, 1], [-1, 1]])


def populations(x, steps=4):
    return Interaction(np.exp(x[:4]).tolist(), float(x[4]), float(x[5]), YEARS, steps, 1 / steps)


def pelts():
    truth, rng = populations(TRUE_LV), np.random.default_rng(12)
    return np.array([truth.p, truth.q]) + 0.25 * rng.standard_normal((2, YEARS + 1))


PELTS = pelts()


@posterior("Lotka-Volterra", [-0.7, -3.5, -0.2, -3.7, 3.4, 1.8, -1.0, -1.0])
def lotka_volterra(x, gradient):
    """log y ~ N(log of the populations, s^2) each year.

    x = log (a, b, c, d, prey(0), predators(0), s of prey, s of predators), normal priors.
    """
    try:
        path = populations(x)
        precision = np.exp(-2 * x[6:])
        off = PELTS - np.array([path.p, path.q])
        squares = precision * (off**2).sum(axis=1)
        z = (x - LV_PRIOR[:, 0]) / LV_PRIOR[:, 1]
        value = -0.5 * (squares.sum() + z @ z) - (YEARS + 1) * x[6:].sum()
        if not gradient:
            return value
        g = np.zeros(8)
        g[:6] = path.back(*(precision[:, None] * off).tolist())
        g[:4] *= np.exp(x[:4])
        g[6:] = squares - (YEARS + 1)
        return value, g - z / LV_PRIOR[:, 1]
    except OverflowError:
        return impossible(x, gradient)


DAYS, PEOPLE = 30, 2000
SIR_PRIOR = np.array([[0, 1.0], [-1, 1], [-6, 2], [0, 1.5]])


def epidemic(x):
    """S' = -beta S I, I' = beta S I - gamma I, in fractions; p = log S, q = log I."""
    beta, gamma = math.exp(x[0]), math.exp(x[1])
    return Interaction([0.0, beta, gamma, beta], math.log1p(-math.exp(x[2])), float(x[2]), DAYS,
                       2, 0.5)


def infected():
    S = np.exp(epidemic(np.log([0.6, 0.25, 2e-3])).p)
    return np.random.default_rng(13).poisson(0.4 * PEOPLE * -np.diff(S))


CASES_A_DAY = infected()


@posterior("SIR epidemic", [-0.5, -1.0, -5.0, 0.0])
def sir(x, gradient):
    """Daily cases ~ Poisson(rho N (S(t - 1) - S(t))); x = (log beta, log gamma, log I(0), u).

    rho = logistic(u); normal priors.
    """
    if x[2] >= 0:
        return impossible(x, gradient)
    try:
        path = epidemic(x)
    except OverflowError:
        return impossible(x, gradient)
    S = np.exp(path.p)
    fresh, rho = -np.diff(S), 0.5 * (1 + np.tanh(0.5 * x[3]))
    z = (x - SIR_PRIOR[:, 0]) / SIR_PRIOR[:, 1]
    with np.errstate(all="ignore"):
        value = (CASES_A_DAY @ np.log(rho * fresh) - PEOPLE * rho * fresh.sum() - 0.5 * z @ z)
    if not gradient or not np.isfinite(value):
        return impossible(x, gradient) if not np.isfinite(value) else value
    w = CASES_A_DAY / fresh - PEOPLE * rho          # derivative by the fresh cases
    g_S = np.zeros(DAYS + 1)
    g_S[:-1] += w
    g_S[1:] -= w
    _, g_b, g_c, g_d, g_p, g_q = path.back((g_S * S).tolist(), [0.0] * (DAYS + 1))
    I0 = math.exp(x[2])
    g = np.array([(g_b + g_d) * math.exp(x[0]), g_c * math.exp(x[1]), g_q - g_p * I0 / (1 - I0),
                  (1 - rho) * (CASES_A_DAY.sum() - PEOPLE * rho * fresh.sum())])
    return value, g - z / SIR_PRIOR[:, 1]
