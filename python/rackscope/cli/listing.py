"""What there is to run: systems with their knobs, workloads with their parameters."""

from __future__ import annotations

from rackscope.api.systems import listing
from rackscope.cli.output import print_json


def print_listing(as_json: bool) -> None:
    found = listing()
    if as_json:
        print_json(found.model_dump())
        return
    for heading, like, entries in (
        ("Systems", "", [(one.name, one.description, one.knobs) for one in found.systems]),
        ("Workloads", " and those like it", [(one.name, one.description, one.parameters) for one in found.workloads]),
    ):
        print(heading)
        for name, description, _ in entries:
            print(f"  {name:<14} {description}")
        print()
        shown: set[tuple[str, str]] = set()
        for name, _, settings in entries:
            fresh = [item for item in settings if (item.name, item.help) not in shown]
            shown |= {(item.name, item.help) for item in fresh}
            if fresh:
                print(f"  --set for {name}{like}")
                for item in fresh:
                    print(f"    {item.name:<22} {item.help} (default {item.default})")
        print()
