"""Verdict: whether the draws of a run may be trusted, with the reasons where not."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
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
    """Whether the draws of a run may be trusted; prints as a paragraph with its reasons.

    Attributes
    ----------
    status : str
        "ok": nothing that was looked at speaks against the draws. "doubtful": they may be off by
        more than their stated errors, or are too few to say. "wrong": they show what draws of the
        density hardly ever show. It is that of the gravest reason.
    reasons : tuple of Finding
        What speaks against the draws, each with what to do: the findings of ``result.warnings``,
        and those of further evaluations where these were asked for.
    known : str
        What is known of the draws where nothing speaks against them: R-hat and effective sample
        sizes, in words.
    evaluations : int
        Further evaluations of the density that it has taken.
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
        """What further evaluations have shown, or what no check can show."""
        if self.status != "ok":
            return ""
        if self.evaluations:
            return (f"{self.evaluations} further evaluations have found no place that the chains "
                    "have left out.")
        return "No check can find a mode that no chain has visited."

    def to_dict(self) -> dict[str, Any]:
        """The verdict as texts, numbers and lists of them, for JSON."""
        return {"status": self.status, "known": self.known, "evaluations": self.evaluations,
                "reasons": [{"kind": one.kind, "status": one.status, "text": one.text,
                             "coordinates": list(one.coordinates),
                             "chains": [int(k) for k in one.chains]} for one in self.reasons]}

    def __str__(self) -> str:
        lines = wrap(self.heading, WIDTH)
        for one in self.reasons:
            lines += wrap(one.text, WIDTH, initial_indent="- ", subsequent_indent="  ")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(one.text)}</li>" for one in self.reasons)
        return f"<p>{escape(self.heading)}</p>" + (f"<ul>{items}</ul>" if items else "")


def status_of(reasons: tuple[Finding, ...]) -> str:
    """That of the gravest reason; "ok" without any."""
    return max((one.status for one in reasons), key=STATUSES.index, default="ok")
