"""Mistakes in moves between modes."""

from twins.twin import twin

TWINS = [
    twin("jumps_without_ratio", "jumps", "jumps",
         "Hops lack the Jacobian, independent draws the ratio of q.",
         ("c.log_q = self.log_q_x - self.log_q_y", "c.log_q = 0"),
         ("c.log_q = log(self.weights[b] / self.weights[a]) + log_s - self.log_modes(c.y)",
          "c.log_q = 0")),
    twin("jumps_without_images", "jumps", "jumps",
         "The weight of the image that is proposed is not in the ratio.",
         ("self.log_q_y += self.log_images(c.y)", "pass"),
         ("c.log_q += self.log_images(c.x) - self.log_images(c.y)", "pass")),
    twin("jumps_unannounced", "jumps", "jumps",
         "The inner sampler treats every decision as its own.",
         ("        if self.move == INNER:\n            self.accepted = c.accepted\n"
          "        elif c.accepted:\n            self.accepted = False\n"
          "            self.inner.displaced()\n",
          "        self.accepted = c.accepted\n")),
]
