"""``study known-answers``: whether rackscope's own verdicts are right, on workloads whose limit is built in."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="known-answers",
    help="check the verdicts of 'study pressure' on workloads with a known limit",
    description=(
        "Runs workloads that are limited by a known resource, or by none, and judges them as 'study pressure' does.\n"
        "The fraction of correct verdicts shows how far verdicts on this host can be trusted."
    ),
    conduct=later("known_answers.conduct:conduct"),
    check=later("known_answers.conduct:check"),
    subject="none",
    options=(
        Option("repeat", "count", "number of times all cases are judged", "1"),
        Option("case", "text", "only this case; may be repeated", repeated=True, metavar="NAME"),
        Option(
            "levels", "text", "fractions of a resource that squeezes leave; the largest decides", "0.6", metavar="LIST"
        ),
        Option("window", "duration", "length of one window", "250ms"),
        Option("blocks", "count", "blocks with all squeezes; later blocks only have those still inconclusive", "3"),
        Option("budget", "duration", "measuring time of one phase", "60s"),
    ),
)
