"""Entries of the fuzzer: every public function and class, with arguments that work."""

from fuzz.entries_of_arrays import arrays, built_in_targets, tests_of_samplers
from fuzz.entries_of_densities import densities, models, problems
from fuzz.entries_of_runs import (
    after_runs,
    mixture_runs,
    runs,
    sampler_runs,
    schedules,
    stops,
    weighted_runs,
)

ENTRIES = {name: entry
           for group in (runs, sampler_runs, mixture_runs, weighted_runs, schedules, stops,
                         after_runs, densities, problems, models, arrays, built_in_targets,
                         tests_of_samplers)
           for name, entry in group()}
