"""Hamiltonian samplers, with momenta of mass Sigma^-1 and trees built by recursion."""

from math import exp, inf, log

import numpy as np

from fastkam.samplers import Decision, Field, Proposal, metrics
from reference.base import Reference, covariance


class Hamiltonian(Reference):
    """r ~ N(0, Sigma^-1), x' = Sigma r, r' = grad log pi(x); dual averaging; two windows."""

    GRADIENT = True
    lockstep = True
    FIELDS = {
        "log_eps": Field("log of the step size", learned=True),
        "eps": Field("the step size of the trajectory", stat="step_size"),
        "diverging": Field("whether H rose too far", dtype="i8", stat="diverging"),
        "energy": Field("H of the accepted proposal", stat="energy"),
        "energy_error": Field("the same less H at the start", stat="energy_error"),
        "max_energy_error": Field("largest |H - H_0|", stat="max_energy_error"),
    }

    def start(self, x0):
        s = self.s
        self.F = np.linalg.cholesky(covariance(s.inverse_mass_matrix, self.d))
        self.log_eps = log(self.d**-0.25 if s.step_size is None else s.step_size)
        self.log_eps_mean = self.log_eps
        self.searching, self.window = True, 10
        self.old, self.young, self.t_eps = [], [], 0
        self.mu = self.H_mean = 0.0
        self.eps = self.energy = self.energy_error = self.max_energy_error = 0.0
        self.diverging = False

    # ---- dynamics ----

    def velocity(self, r):
        return self.F @ (self.F.T @ r)

    def momentum(self, rng):
        return np.linalg.solve(self.F.T, rng.standard_normal(self.d))

    def H(self, lp, r):
        return -lp + 0.5 * r @ self.velocity(r)

    def leapfrog(self, x, grad, r, eps):
        """(point, momentum there), which is void where the point has no density."""
        half = r + 0.5 * eps * grad
        point = yield x + eps * self.velocity(half)
        return point, half + 0.5 * eps * point.grad

    def step(self, x, rng):
        if self.searching and self.adapting:
            self.searching = False
            if self.s.metric != "fixed":
                self.F = np.diag(np.abs(self.grad_x) ** -0.5)
            yield from self.search(x, rng)
        r = self.momentum(rng)
        u = self.launch(rng)
        self.H0, self.eps = self.H(self.logp_x, r), exp(self.log_eps) * self.jitter(u)
        verdict = yield from self.trajectory(x, r, u, rng)
        return verdict

    def step_size(self):
        """Return the compiled sampler's step size in lockstep, which depends on acceptance."""
        return self.taken("step_size", self.eps)

    def energies(self, error, worst):
        self.energy, self.energy_error, self.max_energy_error = self.H0 + error, error, worst

    def jitter(self, u):
        return 1.0

    def search(self, x, rng):
        sign = None
        while True:
            r = self.momentum(rng)
            point, r1 = yield from self.leapfrog(x, self.grad_x, r, exp(self.log_eps))
            good = point.logp > -inf and (self.H(point.logp, r1) - self.H(self.logp_x, r)
                                          < -log(0.8))
            sign = (1 if good else -1) if sign is None else sign
            if good != (sign == 1):
                break
            self.log_eps += sign * log(2)
        self.mu, self.H_mean, self.log_eps_mean = log(10) + self.log_eps, 0.0, 0.0

    # ---- adaptation ----

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.t_eps += 1
        t = self.t_eps
        self.H_mean += (self.s.target_acceptance - alpha - self.H_mean) / (t + 10)
        self.log_eps = self.mu - np.sqrt(t) / 0.05 * self.H_mean
        self.log_eps_mean += t**-0.75 * (self.log_eps - self.log_eps_mean)
        if self.s.metric == "fixed" or self.t >= 0.85 * self.end_of_adaptation:
            return
        self.old.append((y, self.grad_y) if accepted else (x, self.grad_x))
        self.young.append(self.old[-1])
        changed = len(self.young) >= self.window
        if changed:
            self.window = int(1.5 * self.window)
            self.old, self.young = self.young, []
        X, G = (np.array(rows) for rows in zip(*self.old, strict=True))
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


class HMC(Hamiltonian, of="hmc"):
    def launch(self, rng):
        return rng.random() if self.s.jitter > 0 else 0.5

    def jitter(self, u):
        return 1 + self.s.jitter * (2 * u - 1)

    def trajectory(self, x, r, u, rng):
        y, grad, energies, self.diverging = x, self.grad_x, [self.H0], False
        for _ in range(self.s.n_steps):
            point, r = yield from self.leapfrog(y, grad, r, self.step_size())
            if point.logp == -inf:
                break
            y, grad = point.x, point.grad
            energies.append(self.H(point.logp, r))
            self.diverging = not max(energies) - min(energies) <= self.s.divergence_threshold
            if self.diverging:
                break
        log_ratio = self.H0 - energies[-1]
        accepted = point.logp > -inf and not self.diverging and self.E > -log_ratio
        self.energies(-log_ratio if accepted else 0.0, max(abs(H - self.H0) for H in energies))
        if point.logp == -inf or self.diverging:
            return Decision(alpha=0.0, accepted=False)
        return Proposal(point, log_ratio - point.logp + self.logp_x)


class Tree:
    """A trajectory of points in the order in which they were reached."""

    def __init__(self, point, r):
        self.first, self.last, self.rho, self.end = r, r, r, point


class NUTS(Hamiltonian, of="nuts"):
    FIELDS = Hamiltonian.FIELDS | {
        "depth": Field("doublings made", dtype="i8", stat="tree_depth"),
        "n_steps": Field("leapfrog steps made", dtype="i8", stat="n_steps")}

    def start(self, x0):
        super().start(x0)
        self.depth = self.n_steps = 0

    def launch(self, rng):
        return rng.random()

    def trajectory(self, x, r, u, rng):
        self.rng, eps = rng, self.step_size()
        ends = {-1: (x, self.grad_x, r), 1: (x, self.grad_x, r)}
        rho, log_w, draw, error = r, 0.0, None, 0.0
        self.depth = self.n_steps = self.sum_alpha = self.worst = 0
        self.diverging = False
        while True:
            sign = 1 if u < 0.5 else -1
            self.log_w = -inf
            tree = yield from self.build_tree(*ends[sign], sign * eps, self.depth)
            if tree is None:
                break
            if rng.random() < exp(min(0, self.log_w - log_w)):
                draw, error = self.draw, self.error
            log_w = np.logaddexp(log_w, self.log_w)
            self.depth += 1
            turned = self.turns(ends[-sign][2], ends[sign][2], rho, tree.first, tree.last, tree.rho)
            if turned or self.depth == self.s.max_tree_depth:
                break
            ends[sign], rho = (tree.end.x, tree.end.grad, tree.last), rho + tree.rho
            u = rng.random()
        self.energies(error, self.worst)
        return Decision(draw, alpha=self.sum_alpha / self.n_steps, accepted=draw is not None)

    def build_tree(self, x, grad, r, eps, depth):
        """A tree of 2^depth points beyond x with momentum r, or None."""
        if depth == 0:
            point, r = yield from self.leapfrog(x, grad, r, eps)
            error = self.H(point.logp, r) - self.H0 if point.logp > -inf else inf
            self.n_steps += 1
            self.worst = max(self.worst, abs(error))
            if not error <= self.s.divergence_threshold:
                self.diverging = True
                return None
            self.sum_alpha += exp(min(0, -error))
            self.log_w = np.logaddexp(self.log_w, -error)
            if self.rng.random() < exp(-error - self.log_w):
                self.draw, self.error = point, error
            return Tree(point, r)
        a = yield from self.build_tree(x, grad, r, eps, depth - 1)
        if a is None:
            return None
        b = yield from self.build_tree(a.end.x, a.end.grad, a.last, eps, depth - 1)
        if b is None:
            return None
        turned = self.turns(a.first, a.last, a.rho, b.first, b.last, b.rho)
        a.rho, a.last, a.end = a.rho + b.rho, b.last, b.end
        return None if turned else a

    def turns(self, a_first, a_last, a_rho, b_first, b_last, b_rho):
        pairs = [((a_first, b_last), a_rho + b_rho), ((a_first, b_first), a_rho + b_first),
                 ((a_last, b_last), a_last + b_rho)]
        return any(self.velocity(r) @ rho <= 0 for two, rho in pairs for r in two)
