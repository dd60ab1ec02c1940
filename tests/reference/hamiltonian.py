"""Hamiltonian samplers, with momenta of mass Sigma^-1 and trees built by recursion."""

from math import exp, inf, log

import numpy as np

from fastkam.samplers import metrics
from reference.chain import Reference, covariance


class Hamiltonian(Reference):
    """r ~ N(0, Sigma^-1), x' = Sigma r, r' = grad log pi(x); dual averaging; two windows."""

    lockstep = True

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.F = np.linalg.cholesky(covariance(s.cov, self.d))
        self.log_eps = log(self.d**-0.25 if s.step_size is None else s.step_size)
        self.log_eps_mean = self.log_eps
        self.searching, self.window = True, 10
        self.old, self.young, self.t_eps = [], [], 0
        self.mu = self.H_mean = 0.0

    # ---- dynamics ----

    def velocity(self, r):
        return self.F @ (self.F.T @ r)

    def momentum(self, rng):
        return np.linalg.solve(self.F.T, rng.standard_normal(self.d))

    def H(self, lp, r):
        return -lp + 0.5 * r @ self.velocity(r)

    def leapfrog(self, x, r, eps):
        """(y, r, log pi(y)); r is void where there is no density."""
        half = r + 0.5 * eps * self.grad(x)
        y, lp = self.look(x + eps * self.velocity(half))
        return y, half + 0.5 * eps * self.grad(y), lp

    def step(self, x, lp, rng):
        if self.searching and self.gain is not None:
            self.searching = False
            if self.s.metric != "fixed":
                self.F = np.diag(np.abs(self.grad(x)) ** -0.5)
            E = self.search(x, lp, rng)
            r = self.momentum(rng)
            u = self.launch(rng)
        else:
            r = self.momentum(rng)
            u = self.launch(rng)
            E = rng.standard_exponential()
        self.H0, self.own = self.H(lp, r), exp(self.log_eps) * self.jitter(u)
        # taken over, since the step size follows the acceptance that follows from it
        self.eps = self.own if self.given is None else self.given["step_size"][self.t]
        return self.trajectory(x, r, u, E, rng)

    def jitter(self, u):
        return 1.0

    def search(self, x, lp, rng):
        E, sign = None, None
        while True:
            r = self.momentum(rng)
            E = rng.standard_exponential() if E is None else E
            _, r1, lp1 = self.leapfrog(x, r, exp(self.log_eps))
            good = lp1 > -inf and self.H(lp1, r1) - self.H(lp, r) < -log(0.8)
            sign = (1 if good else -1) if sign is None else sign
            if good != (sign == 1):
                break
            self.log_eps += sign * log(2)
        self.mu, self.H_mean, self.log_eps_mean = log(10) + self.log_eps, 0.0, 0.0
        return E

    # ---- adaptation ----

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.t_eps += 1
        t = self.t_eps
        self.H_mean += (self.s.target_acceptance - alpha - self.H_mean) / (t + 10)
        self.log_eps = self.mu - np.sqrt(t) / 0.05 * self.H_mean
        self.log_eps_mean += t**-0.75 * (self.log_eps - self.log_eps_mean)
        if self.s.metric == "fixed" or self.t >= 0.85 * self.stop:
            return
        self.old.append(y if accepted else x)
        self.young.append(self.old[-1])
        changed = len(self.young) >= self.window
        if changed:
            self.window = int(1.5 * self.window)
            self.old, self.young = self.young, []
        X = np.array(self.old)
        G = np.array([self.grad(z) for z in X])
        if self.s.metric == "diagonal":
            if len(X) >= 4:
                self.F = np.diag(self.diagonal(X, G))
        elif changed:
            self.F = self.shape(X, G)

    def diagonal(self, X, G):
        """The diagonal of F."""
        if self.s.learn_from == "gradients":
            with np.errstate(invalid="ignore", divide="ignore"):
                new = np.sqrt(X.std(axis=0) / G.std(axis=0))
            return np.where(np.isfinite(new) & (new > 0), new, np.diag(self.F))
        n = len(X)
        return np.sqrt((n * X.var(axis=0) + 5 * np.diag(self.F) ** 2) / (n + 5))

    def shape(self, X, G):
        """F, any square root."""
        if not (np.ptp(X, axis=0) > 0).all():
            return self.F
        if self.s.learn_from == "draws":
            return metrics.dense_from_draws(X, G)[0]
        if self.s.metric == "dense":
            return metrics.dense(X, G)[0]
        s, U, w = metrics.low_rank(X, G, most=self.s.rank)
        return np.diag(s) @ (np.eye(self.d) + U.T @ np.diag(w) @ U)

    def freeze(self):
        if self.t_eps:
            self.log_eps = self.log_eps_mean

    def fields(self):
        return {"log_eps": self.log_eps, "log_eps_mean": self.log_eps_mean, "H_mean": self.H_mean}


class HMC(Hamiltonian):
    def launch(self, rng):
        return rng.random() if self.s.jitter > 0 else 0.5

    def jitter(self, u):
        return 1 + self.s.jitter * (2 * u - 1)

    def trajectory(self, x, r, u, E, rng):
        y, energies, self.diverging = x, [self.H0], False
        for _ in range(self.s.steps):
            y, r, lp = self.leapfrog(y, r, self.eps)
            if lp == -inf:
                return y, lp, -inf, False
            energies.append(self.H(lp, r))
            self.diverging = not max(energies) - min(energies) <= self.s.max_energy_error
            if self.diverging:
                return y, -inf, -inf, False
        log_ratio = self.H0 - self.H(lp, r)
        return y, lp, log_ratio, log_ratio > -E

    def stats(self):
        return {"step_size": self.own, "diverging": self.diverging, "energy": self.H0}


class Tree:
    """A trajectory of points in the order in which they were reached."""

    def __init__(self, y, r, lp, log_w):
        self.first, self.last, self.rho = r, r, r
        self.end, self.draw, self.lp, self.log_w = y, y, lp, log_w


class NUTS(Hamiltonian):
    def launch(self, rng):
        return rng.random()

    def trajectory(self, x, r, u, E, rng):
        ends = {-1: (x, r), 1: (x, r)}
        rho, log_w, draw, lp_draw = r, 0.0, x, None
        self.depth = self.n_steps = self.diverging = self.sum_alpha = self.worst = 0
        self.rng = rng
        while True:
            sign = 1 if u < 0.5 else -1
            tree = self.build(*ends[sign], sign * self.eps, self.depth)
            if tree is None:
                break
            if rng.random() < exp(min(0, tree.log_w - log_w)):
                draw, lp_draw = tree.draw, tree.lp
            log_w = np.logaddexp(log_w, tree.log_w)
            self.depth += 1
            turned = self.turns(ends[-sign][1], ends[sign][1], rho, tree.first, tree.last, tree.rho)
            if turned or self.depth == self.s.max_depth:
                break
            ends[sign], rho = (tree.end, tree.last), rho + tree.rho
            u = rng.random()
        alpha = self.sum_alpha / self.n_steps
        return draw, lp_draw, log(alpha) if alpha else -inf, lp_draw is not None

    def build(self, x, r, eps, depth):
        """A tree of 2^depth points beyond (x, r), or None."""
        if depth == 0:
            y, r, lp = self.leapfrog(x, r, eps)
            error = self.H(lp, r) - self.H0 if lp > -inf else inf
            self.n_steps += 1
            self.worst = error if abs(error) > abs(self.worst) else self.worst
            if not error <= self.s.max_energy_error:
                self.diverging = 1
                return None
            self.sum_alpha += min(1, exp(-error))
            return Tree(y, r, lp, -error)
        a = self.build(x, r, eps, depth - 1)
        b = a and self.build(a.end, a.last, eps, depth - 1)
        if b is None:
            return None
        if self.rng.random() < exp(b.log_w - np.logaddexp(a.log_w, b.log_w)):
            a.draw, a.lp = b.draw, b.lp
        turned = self.turns(a.first, a.last, a.rho, b.first, b.last, b.rho)
        a.log_w, a.rho = np.logaddexp(a.log_w, b.log_w), a.rho + b.rho
        a.last, a.end = b.last, b.end
        return None if turned else a

    def turns(self, a_first, a_last, a_rho, b_first, b_last, b_rho):
        pairs = [((a_first, b_last), a_rho + b_rho), ((a_first, b_first), a_rho + b_first),
                 ((a_last, b_last), a_last + b_rho)]
        return any(self.velocity(r) @ rho <= 0 for two, rho in pairs for r in two)

    def stats(self):
        return {"step_size": self.own, "tree_depth": self.depth, "n_steps": self.n_steps,
                "diverging": self.diverging, "energy": self.H0, "energy_error": self.worst}
