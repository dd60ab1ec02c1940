"""Conversions of a result: arrays, tables, files, figures, the evidence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_flag, checked_names
from fastkam.diagnosed import Diagnosed
from fastkam.run.files import check_output

if TYPE_CHECKING:
    from xarray import DataTree

    from fastkam.evidence.estimate import Evidence
    from fastkam.result import Result


class Outputs(Diagnosed):
    """The methods of `fastkam.Result` that convert it or compute from it."""

    def _repr_html_(self) -> str:
        """Return the summary as HTML, for notebooks."""
        from html import escape

        table = self.summary()._repr_html_() if self.trace.rows else ""
        return f"<p>{escape(repr(self))}</p>{table}"

    def equally_weighted(self) -> Result:
        """Return this result, resampled if its draws have weights."""
        result = cast("Result", self)
        return result if self.log_weights is None else result.resample()

    @checked_names
    def log_evidence(
        self, *, method: str | None = None, evaluations: int | None = None, target: Any = None,
        vectorized: bool = False, seed: Any = None,
    ) -> Evidence:
        """Estimate the log of the integral of the density, the evidence of a Bayesian model.

        With `prior`, which is normalized, it is the log marginal likelihood; of a log density
        alone it is the log of its integral over x, within the bounds if there are any.

        Parameters
        ----------
        method : str, optional
            "bridge": bridge sampling with a mixture q that is fitted to draws of other chains;
            "frozen_bridge": the same with the proposal of `jumps` as q; "stepping_stones" or
            "thermodynamic": for `pt` or `scout` with a ladder down to the reference, alone or
            within `jumps`. By default the first of these whose diagnostics are good. "weights", the
            only one for weighted draws (``surrogate="learn"``): from the weights and a bridge
            between the surrogate and its mixture, without further evaluations.
        evaluations : int, optional
            Number of evaluations of the density at draws of the fitted q. By default the effective
            sample size of the draws, but at least 400, and at most a tenth of the run's
            evaluations (or 400) and 20 000. With 0 the estimate uses only what the run has
            recorded, where that is possible.
        target : optional
            The density, where the result comes from a file: as in `fastkam.resume`.
        vectorized : bool
            As in `fastkam.sample`, of that `target`.
        seed : int, SeedSequence or Generator, optional
            Seed of the draws of q; by default it follows from the seed of the run.

        Returns
        -------
        Evidence
            With ``value``, ``error``, ``method``, ``k_hat``, the ``estimates`` by all methods, and
            ``notes``: reasons to doubt it.

        Raises
        ------
        TypeError, ValueError
            For a bad argument; for a run of fewer than 20 draws per chain; if the density is needed
            and is missing, or differs from that of the run.
        SamplingError
            If the density raises an error at a draw of q, other than an ArithmeticError,
            ValueError, RuntimeError or AssertionError, which count as a density of 0.

        References
        ----------
        Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
        identity: a theoretical exploration. Statistica Sinica 6, 831-860.
        """
        from fastkam.evidence.estimate import log_evidence

        return log_evidence(cast("Result", self), method=method, evaluations=evaluations,
                            target=target, vectorized=vectorized, seed=seed)

    def to_numpy(self, *, flat: bool = False) -> NDArray[np.float64]:
        """The draws as an array in memory, (chains, draws, d); (chains * draws, d) if `flat`.

        A flat array has one chain after the other. The array is read-only where it is a view of the
        draws; ``np.array`` makes a copy. Weighted draws are resampled, as in all conversions: see
        `Result.resample`.
        """
        draws = np.asarray(self.equally_weighted().draws)
        return draws.reshape(-1, draws.shape[2]) if check_flag("flat", flat) else draws

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row for each draw, indexed by (chain, draw); needs pandas.

        The columns are the coordinates ("theta[0]"), the elements of extras, and the statistics.
        """
        from fastkam.interop.pandas import to_pandas

        return to_pandas(self.equally_weighted())

    def to_netcdf(self, path: str | os.PathLike[str]) -> None:
        """Write `to_datatree` to the file `path`, which ArviZ reads.

        Needs xarray, and h5netcdf or netCDF4.
        """
        from fastkam.interop.arviz import to_netcdf

        check_output("path", path)
        to_netcdf(self.equally_weighted(), path)

    def to_datatree(self) -> DataTree:
        """An xarray DataTree as ArviZ expects it; needs xarray (``pip install fastkam[arviz]``)."""
        from fastkam.interop.arviz import to_datatree

        return to_datatree(self.equally_weighted())

    def to_arviz(self):
        """The draws as the installed ArviZ takes them: a DataTree, or InferenceData before 1.0."""
        from fastkam.interop.arviz import to_arviz

        return to_arviz(self.equally_weighted())

    @checked_names
    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a report of the run to the HTML file `path`: one file that needs no network.

        It has the summary, that of extras and derived quantities (the first 50 elements of each),
        the findings of `warnings`, figures (if matplotlib is installed,
        ``pip install fastkam[plot]``), settings, versions and references.

        Parameters
        ----------
        path : path
            An old file of that name is replaced, unless it is that of a run or of its calls.
        title : str, optional
            Its heading.

        Raises
        ------
        TypeError, ValueError, OSError
            If `path` is no file that can be written, or that of a run or of its calls.
        """
        from fastkam.report import write_report

        write_report(cast("Result", self), path, title)
