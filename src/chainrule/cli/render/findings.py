"""Findings for people."""

from __future__ import annotations

import chainrule as cr

SIGN = {"ok": "ok       ", "note": "note     ", "problem": "PROBLEM  "}


def words(finding: cr.doctor.Finding) -> str:
    """A finding in two or three lines."""
    lines = [f"{SIGN[finding.level]}{finding.about}: {finding.measured}", f"{'':9}{finding.meaning}"]
    return "\n".join([*lines, f"{'':9}Try: {finding.advice}"] if finding.advice else lines)
