"""What there is to run: systems with their knobs, workloads with their parameters."""

from __future__ import annotations

from typing import Any

from rackscope.cli.output import print_json
from rackscope.systems import list_systems
from rackscope.workloads import list_workloads


def print_listing(as_json: bool) -> None:
    """Everything that ``rackscope run`` takes."""
    listing = _listing()
    if as_json:
        print_json(listing)
        return
    for heading, entries, settings in (
        ("Systems", listing["systems"], "knobs"),
        ("Workloads", listing["workloads"], "parameters"),
    ):
        print(heading)
        for entry in entries:
            print(f"  {entry['name']:<14} {entry['description']}")
        print()
        shown: set[tuple[str, str]] = set()
        for entry in entries:
            fresh = [item for item in entry[settings] if (item["name"], item["help"]) not in shown]
            shown |= {(item["name"], item["help"]) for item in fresh}
            if fresh:
                print(f"  --set for {entry['name']}{'' if settings == 'knobs' else ' and those like it'}")
                for item in fresh:
                    print(f"    {item['name']:<22} {item['help']} (default {item['default']})")
        print()


def _listing() -> dict[str, Any]:
    return {
        "systems": [
            {
                "name": system.name,
                "description": system.description,
                "protocols": list(system.protocols),
                "operations": sorted(system.operations),
                "knobs": [
                    {"name": knob.name, "default": str(knob.default), "help": knob.help, "source": knob.source}
                    for knob in system.knobs
                ],
            }
            for system in list_systems()
        ],
        "workloads": [
            {
                "name": workload.name,
                "description": workload.description,
                "source": workload.source,
                "parameters": [
                    {"name": parameter.name, "default": parameter.default, "help": parameter.help}
                    for parameter in workload.parameters
                ],
            }
            for workload in list_workloads()
        ],
    }
