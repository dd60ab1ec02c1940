"""autoMALA, for its broken twin."""
from fastkam._core.samplers.autostep cimport AutoStep

cdef class AutoMALA(AutoStep):
    pass
