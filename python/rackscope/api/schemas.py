"""JSON schemas of what rackscope writes and prints, made from the code: docs/reference/schemas has them as files."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from rackscope.advice.colocate import Colocation
from rackscope.advice.cost import CostComparison
from rackscope.advice.measure_next import MeasureNext
from rackscope.advice.provision import Provision
from rackscope.advice.scale_types import ScaleAdvice
from rackscope.api import outputs
from rackscope.api.systems import ListOutput
from rackscope.host.ceilings import Ceilings
from rackscope.runs.manifest import Manifest
from rackscope.runs.study import StudyRecord

#: Files of a run or study directory.
_FILES: dict[str, tuple[Any, str]] = {
    "manifest": (Manifest, "manifest.json of a run directory"),
    "study": (StudyRecord, "study.json of a study directory"),
}
#: What a verb prints with --json.
_OUTPUTS: dict[str, tuple[Any, str]] = {
    "failure": (outputs.FailureOutput, "any verb with --json that fails or is stopped"),
    "run-output": (outputs.RunOutput, "rackscope run --json and rackscope report RUN --json"),
    "study-output": (outputs.StudyOutput, "rackscope study --json and rackscope report STUDY --json"),
    "compare-output": (outputs.CompareOutput, "rackscope compare --json"),
    "matrix-output": (outputs.MatrixOutput, "rackscope matrix --json"),
    "list-output": (ListOutput, "rackscope run --list --json"),
    "calibrate-output": (Ceilings, "rackscope calibrate --json"),
    "doctor-output": (outputs.DoctorOutput, "rackscope doctor --json"),
    "repair-output": (outputs.RepairOutput, "rackscope doctor --repair --json"),
    "get-output": (outputs.GetOutput, "rackscope get --json"),
    "prune-output": (outputs.PruneOutput, "rackscope prune --json"),
    "project-output": (outputs.ProjectOutput, "rackscope project --json"),
    "cost-output": (CostComparison, "rackscope cost --json"),
    "advise-provision-output": (Provision, "rackscope advise provision --json"),
    "advise-scale-output": (ScaleAdvice, "rackscope advise scale --json"),
    "advise-colocate-output": (Colocation, "rackscope advise colocate --json"),
    "advise-measure-next-output": (MeasureNext, "rackscope advise measure-next --json"),
    "models-list-output": (outputs.ModelsListOutput, "rackscope models list --json"),
    "models-predict-output": (outputs.ModelsPredictOutput, "rackscope models predict --json"),
    "models-fit-output": (outputs.ModelsFitOutput, "rackscope models fit --json"),
    "models-validate-output": (outputs.ModelsValidateOutput, "rackscope models validate --json"),
    "models-pairs-output": (outputs.ModelsPairsOutput, "rackscope models validate --pairs --json"),
    "paper-output": (outputs.PaperOutput, "rackscope paper NAME --json"),
    "paper-list-output": (outputs.PaperListOutput, "rackscope paper --list --json"),
}
#: Keys that a verb adds to the object: where it wrote what was asked for with --out.
_WRITTEN = {"cost-output": ("report",), "paper-output": ("report",), "advise-provision-output": ("report",)}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by the name of its file, in the draft of 2020-12."""
    found = {name: _schema(of, title) for name, (of, title) in _FILES.items()}
    for name, (of, title) in _OUTPUTS.items():
        # What JSON cannot say, such as infinity, is printed as null.
        found[name] = _nullable_numbers(_schema(of, title))
        for key in _WRITTEN.get(name, ()):
            found[name]["properties"][key] = {"type": "string"}
    return found


def _schema(of: Any, title: str) -> dict[str, Any]:
    schema = TypeAdapter(of).json_schema(mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **_plain({key: value for key, value in schema.items() if key != "title"})}


def _plain(schema: Any) -> Any:
    """Without the titles that only repeat a key."""
    if isinstance(schema, dict):
        kept = {key: one for key, one in schema.items() if not (key == "title" and isinstance(one, str))}
        return {key: _plain(one) for key, one in kept.items()}
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema


def _nullable_numbers(schema: Any) -> Any:
    if isinstance(schema, dict):
        changed = {key: _nullable_numbers(one) for key, one in schema.items()}
        return {**changed, "type": ["number", "null"]} if schema.get("type") == "number" else changed
    return [_nullable_numbers(one) for one in schema] if isinstance(schema, list) else schema
