"""Verdict: whether the draws of a run can be trusted, and the reasons if not."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from fastkam.diagnostics.look import Finding

WIDTH = 88
STATUSES = ("ok", "doubtful", "wrong")
LEADS = {
    "doubtful": "What the draws say may be off by more than the stated errors.",
    "wrong": "These are not draws of the density, or not yet: do not use them.",
}


@dataclass(frozen=True)
class Verdict:
    """Whether the draws of a run can be trusted; prints as a paragraph with its reasons.

    Attributes
    ----------
    status : str
        "ok": no check has found a reason against the draws. "doubtful": estimates may be off by
        more than their stated errors, or there are too few draws to know. "wrong": the draws have a
        property that draws of the density hardly ever have. The status is that of the gravest
        reason.
    reasons : tuple of Finding
        The findings of ``result.warnings``, each with a remedy, and those from further evaluations
        if there were any. Those whose own status is "ok" are no reasons against the draws.
    known : str
        R-hat and effective sample sizes as text, if the status is "ok".
    evaluations : int
        Number of further evaluations of the density.
    """

    status: str
    reasons: tuple[Finding, ...] = ()
    known: str = ""
    evaluations: int = 0

    @property
    def heading(self) -> str:
        """The status and what it means, without the reasons."""
        parts = [f"Verdict: {self.status}.", LEADS.get(self.status, self.known), self.looked]
        return " ".join(filter(None, parts))

    @property
    def looked(self) -> str:
        """The result of further evaluations, or the limits of the checks."""
        if self.status != "ok":
            return ""
        if self.evaluations:
            return (f"{self.evaluations} further evaluations have found no place that the chains "
                    "have left out.")
        return "No check of the draws can find a mode that no chain has visited."

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as texts, numbers and lists, for JSON."""
        return {"status": self.status, "known": self.known, "evaluations": self.evaluations,
                "reasons": [{"kind": one.kind, "status": one.status, "text": one.text,
                             "coordinates": list(one.coordinates),
                             "chains": [int(k) for k in one.chains],
                             "point": list(one.point)} for one in self.reasons]}

    def __str__(self) -> str:
        lines = wrap(self.heading, WIDTH)
        for one in self.reasons:
            lines += wrap(one.text, WIDTH, initial_indent="- ", subsequent_indent="  ")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        items = "".join(f"<li>{escape(one.text)}</li>" for one in self.reasons)
        return f"<p>{escape(self.heading)}</p>" + (f"<ul>{items}</ul>" if items else "")


def status_of(reasons: tuple[Finding, ...]) -> str:
    """Return the status of the gravest reason, or "ok" if there is none."""
    return max((one.status for one in reasons), key=STATUSES.index, default="ok")
