"""Remove old run and study directories, by age or by size.

Says what would be removed, and removes it only with --yes. Folders that rackscope did not make stay, links are not
followed, and what is still going on is left alone.

Examples:
  rackscope prune --older-than 30d             what is older than 30 days
  rackscope prune --keep-bytes 5G --yes        remove the oldest until 5 GiB are left
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rackscope.cli import arguments as common
from rackscope.cli.output import print_json
from rackscope.units import format_bytes

HELP = "remove old run and study directories, by age or size"
UNDOES_LEFTOVERS = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=common.path, default=Path("runs"), help="where they are (default runs)"
    )
    parser.add_argument("--older-than", metavar="TIME", type=common.duration, help="begun longer ago, such as 30d")
    parser.add_argument(
        "--keep-bytes", metavar="SIZE", type=common.size, help="the oldest beyond this size together, such as 5G"
    )
    parser.add_argument("--yes", action="store_true", help="remove them (default: only say what would be removed)")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed, even with --yes")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.api.prune import carry_out, plan_pruning

    pruning = plan_pruning(arguments.folder, older_than_seconds=arguments.older_than, keep_bytes=arguments.keep_bytes)
    remove = arguments.yes and not arguments.dry_run
    if arguments.json:
        gone = list(carry_out(pruning)) if remove else []
        print_json(
            {
                "chosen": [str(one.path) for one in pruning.removed],
                "removed": [str(one.path) for one in gone],
                "freed_bytes": sum(one.size_bytes for one in gone),
                "kept": [str(one.path) for one in pruning.kept],
                "refused": pruning.refused,
            }
        )
        return 0
    for path, why in pruning.refused.items():
        print(f"left alone {path}: {why}")
    for one in carry_out(pruning) if remove else pruning.removed:
        print(f"{'removed' if remove else 'would remove'} {one.path} ({format_bytes(one.size_bytes)})", flush=True)
    count, size = len(pruning.removed), format_bytes(pruning.freed_bytes)
    if not count:
        print("Nothing to remove.")
    elif remove:
        print(f"{count} removed, {size} freed.")
    else:
        print(f"{count} would be removed, {size} freed. Add --yes to remove them.")
    return 0
