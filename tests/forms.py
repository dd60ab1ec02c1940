"""KAM in one of its two forms, whatever the number of points."""

import fastkam as fk


class InPoints(fk.KernelAdaptiveMetropolis):
    """KAM with n x n matrices."""

    def few_points(self, d):
        return True


class InDimensions(fk.KernelAdaptiveMetropolis):
    """KAM with d x d matrices."""

    def few_points(self, d):
        return False


class CyclesInPoints(fk.CyclicalKernelAdaptiveMetropolis):
    """Cyclical KAM with n x n matrices."""

    def few_points(self, d):
        return True
