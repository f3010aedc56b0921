"""How well found labels agree with the true ones, of which several may hold at once: F1 of each, and their mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

#: The label of a phase that no resource limits.
NONE = "none"


@dataclass(frozen=True)
class LabelScore:
    """One label over all judged phases."""

    label: str
    true_positives: int
    false_positives: int
    false_negatives: int

    @property
    def precision(self) -> float | None:
        """Share of what was found that is true; ``None`` when the label was never found."""
        found = self.true_positives + self.false_positives
        return self.true_positives / found if found else None

    @property
    def recall(self) -> float | None:
        """Share of what is true that was found; ``None`` when the label is never true."""
        true = self.true_positives + self.false_negatives
        return self.true_positives / true if true else None

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall (van Rijsbergen 1979); 0 when nothing true was found."""
        total = 2 * self.true_positives + self.false_positives + self.false_negatives
        return 2 * self.true_positives / total if total else 0.0


def score_labels(pairs: Sequence[tuple[Collection[str], Collection[str]]]) -> list[LabelScore]:
    """Scores of every label that is true or found anywhere in ``(true, found)`` pairs, sorted by label."""
    labels = sorted({label for pair in pairs for side in pair for label in side})
    return [
        LabelScore(
            label,
            sum(label in true and label in found for true, found in pairs),
            sum(label not in true and label in found for true, found in pairs),
            sum(label in true and label not in found for true, found in pairs),
        )
        for label in labels
    ]


def macro_f1(scores: Sequence[LabelScore]) -> float | None:
    """Unweighted mean of the labels' F1: a rare label counts as much as a frequent one. ``None`` without labels."""
    return sum(score.f1 for score in scores) / len(scores) if scores else None
