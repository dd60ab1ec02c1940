"""The AutoStep random walk, for its broken twin."""
from fastkam._core.samplers.autostep cimport AutoStep

cdef class AutoStepRandomWalk(AutoStep):
    pass
