"""What a result can be turned into: arrays, tables, files, figures, the evidence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_flag, checked_names
from fastkam.recorded import Recorded
from fastkam.run.files import check_path

if TYPE_CHECKING:
    from xarray import DataTree

    from fastkam.evidence.estimate import Evidence
    from fastkam.result import Result


class Outputs(Recorded):
    """The part of `fastkam.Result` that makes something else of it."""

    log_weights: Any

    def equally_weighted(self) -> Result:
        """This result; resampled where its draws have weights."""
        result = cast("Result", self)
        return result if self.log_weights is None else result.resample()

    @checked_names
    def log_evidence(
        self, *, method: str | None = None, evaluations: int | None = None, target: Any = None,
        vectorized: bool = False, seed: Any = None,
    ) -> Evidence:
        """The log of the integral of the density, which for a Bayesian model is its evidence.

        With `prior` the marginal likelihood: the prior is normalized. Of a log density alone, the
        log of its integral over x, within the bounds where there are any.

        Parameters
        ----------
        method : str, optional
            "bridge": bridge sampling with a mixture q that is fitted to draws of other chains;
            "frozen_bridge": with the q by which `jumps` has proposed moves; "stepping_stones" or
            "thermodynamic": of `pt` or `scout` with a ladder down to the reference, alone or within
            `jumps`. By default the first of these that nothing speaks against.
        evaluations : int, optional
            How often the density is evaluated, at draws of the fitted q. By default as many times
            as the draws are worth independent ones, but 400 at least, a tenth of the run's
            evaluations (or 400) at most, and never more than 20 000. With 0 the estimate is made
            from what the run has kept, where it can be.
        target : optional
            The density, where the result comes from a file: as in `fastkam.resume`.
        vectorized : bool
            As in `fastkam.sample`, of that `target`.
        seed : int, SeedSequence or Generator, optional
            Of the draws of q. By default it follows from the seed of the run.

        Returns
        -------
        Evidence
            With ``value``, ``error``, ``method``, ``k_hat``, the ``estimates`` by all methods, and
            ``notes``: what speaks against it.

        Raises
        ------
        TypeError, ValueError
            For a bad argument; for a run of fewer than 20 draws a chain; where the density is
            needed and is not there, or another one.
        SamplingError
            If the density raises an error at a draw of q, other than one of numbers.

        References
        ----------
        Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
        identity: a theoretical exploration. Statistica Sinica 6, 831-860.
        """
        from fastkam.evidence.estimate import log_evidence

        if self.log_weights is not None:
            raise ValueError("the evidence is not known from weighted draws: run without "
                             'surrogate="learn", or give the draws of result.resample() to another '
                             "method")
        return log_evidence(cast("Result", self), method=method, evaluations=evaluations,
                            target=target, vectorized=vectorized, seed=seed)

    def to_numpy(self, *, flat: bool = False) -> NDArray[np.float64]:
        """The draws as an array in memory, (chains, draws, d); (chains * draws, d) where `flat`.

        Chains stand one after the other in a flat one. Weighted draws are resampled, here and in
        the other forms: see `Result.resample`.
        """
        draws = np.asarray(self.equally_weighted().draws)
        return draws.reshape(-1, draws.shape[2]) if check_flag("flat", flat) else draws

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row a draw, (chain, draw) as its index; needs pandas.

        The columns are the coordinates ("theta[0]"), extras likewise, and statistics.
        """
        from fastkam.interop.pandas import to_pandas

        return to_pandas(self.equally_weighted())

    def to_netcdf(self, path: str | os.PathLike[str]) -> None:
        """Write `to_datatree` to the file `path`, which ArviZ reads; needs xarray and h5netcdf."""
        from fastkam.interop.arviz import to_netcdf

        if path is None:
            raise TypeError("path must be the path of a file, not None")
        check_path("path", path)
        to_netcdf(self.equally_weighted(), path)

    def to_datatree(self) -> DataTree:
        """An xarray DataTree as ArviZ expects it; needs xarray (``pip install fastkam[arviz]``)."""
        from fastkam.interop.arviz import to_datatree

        return to_datatree(self.equally_weighted())

    def to_arviz(self):
        """What the installed ArviZ takes: a DataTree, or an InferenceData before ArviZ 1.0."""
        from fastkam.interop.arviz import to_arviz

        return to_arviz(self.equally_weighted())

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a report of the run to the HTML file `path`: one file that needs no network.

        It has the summary, what `warnings` says, figures (where matplotlib is installed,
        ``pip install fastkam[plot]``), settings, versions and references.

        Parameters
        ----------
        path : path
            An old file of that name is replaced.
        title : str, optional
            Its heading.

        Raises
        ------
        TypeError, ValueError, OSError
            If `path` is no file that can be written.
        """
        from fastkam.report import write_report

        write_report(cast("Result", self), path, title)
