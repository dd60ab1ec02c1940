"""Mistakes in kernel adaptive Metropolis."""

from twins.twin import twin

TWINS = [
    twin("without_hastings", "kam", "invariance",
         "The proposal is taken for symmetric.",
         ("c.log_q = self.reverse_log_q(c) if c.logp_y > -INFINITY else 0.0", "c.log_q = 0")),
    twin("wrong_determinant", "kam", "invariance",
         "The log determinants have the wrong sign.",
         ("self.reverse_log_q(c) if c.logp_y > -INFINITY",
          "self.reverse_log_q(c) - 2 * (self.at_x.log_det - self.at_y.log_det) "
          "if c.logp_y > -INFINITY")),
    twin("stale_reverse", "kam", "invariance",
         "The covariance of an earlier proposal is taken for that of the reverse move.",
         ("        self.at_y.seen = False\n",
          "        self.at_y.seen = self.at_y.seen and not c.accepted\n")),
    twin("stale_distances", "kam", "oracle",
         "Distances of points of the subsample are kept when these have been replaced.",
         ("local_normal", "        self.measured = min(self.measured, i)\n", "")),
    twin("own_distances", "kam", "sharing",
         "They are kept where another chain has replaced the points.",
         ("            self.forget_points()\n",
          "            self.measured = min(self.measured, self.n)\n            self.forget()\n")),
    twin("pca_without_hastings", "kpca", "invariance",
         "The proposal is taken for symmetric.",
         ("        return (self.log_mixture(&self.V_y[0, 0], &self.e[0])\n"
          "                - self.log_mixture(&self.V_x[0, 0], &self.e[0]))",
          "        return 0")),
    twin("pca_equal_weights", "kpca", "oracle",
         "The ratio takes every component of the mixture for equally probable.",
         ("exponent = (log(self.p[k]) - 0.5 * log1p(c)", "exponent = (-0.5 * log1p(c)")),
    twin("cycles_without_hastings", "ckam", "invariance",
         "The proposals of Exploration are taken for symmetric.",
         ("c.log_q = self.reverse_log_q(c) if exploring else 0.0", "c.log_q = 0")),
    twin("cycles_forget_bank", "ckam", "oracle",
         "A frozen cycle makes the covariance of Sampling where it stands, as while it adapts.",
         ("        if not self.frozen:\n            copy(self.d, c.x, &self.x_e[0])\n",
          "        copy(self.d, c.x, &self.x_e[0])\n        if not self.frozen:\n")),
]
