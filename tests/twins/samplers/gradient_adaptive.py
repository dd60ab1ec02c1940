"""Mistakes in gradient-based adaptation and divergence minimization."""

from twins.twin import twin

TWINS = [
    twin("gradient_at_x", "gadrwm", "oracle",
         "It learns from the gradient at x for that at y.",
         ("self.ascend(rho, c.grad_y, ", "self.ascend(rho, c.grad_x, ")),
    twin("wrong_sign", "gadmala", "invariance",
         "The ratio of the proposal densities is upside down.",
         ("c.log_q = langevin_log_q(", "c.log_q = -langevin_log_q(")),
    twin("curvature_twice", "gadmala", "oracle",
         "A factor 1/2 is lost where the gradient is differentiated.",
         ("times_Lt(c.d, -0.25, ", "times_Lt(c.d, -0.5, ")),
    twin("index_of_current_point", "dm", "invariance",
         "The entry of the reverse move is that nearest to x, not to y.",
         ("return self.index.find(c.y)", "return self.index.find(c.x)")),
    twin("better_points_only", "dm", "oracle",
         "It learns from the points that are better than x, not from those that are worse.",
         ("(c.logps[j] < c.logp_x)", "(c.logps[j] > c.logp_x)")),
]
