"""UM-Bridge models: `normal`, and this file as a program serves it at the port that it is given."""

import sys

import numpy as np
import umbridge


class Normal(umbridge.Model):
    """Independent normals: two input vectors, of 1 and 2 numbers."""

    def __init__(self, gradient=True, outputs=1):
        super().__init__("normal")
        self.has_gradient, self.outputs = gradient, outputs

    def get_input_sizes(self, config):
        return [1, 2]

    def get_output_sizes(self, config):
        return [self.outputs]

    def __call__(self, parameters, config):
        x = np.concatenate(parameters)
        return [[-0.5 * float(x @ x) / config.get("scale", 1) ** 2] * self.outputs]

    def gradient(self, out_wrt, in_wrt, parameters, sens, config):
        return [-sens[0] * x / config.get("scale", 1) ** 2 for x in parameters[in_wrt]]

    def supports_evaluate(self):
        return True

    def supports_gradient(self):
        return self.has_gradient


if __name__ == "__main__":
    umbridge.serve_models([Normal()], int(sys.argv[1]))
