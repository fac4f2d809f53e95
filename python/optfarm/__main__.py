"""python -m optfarm report: a job's outcome for people and programs."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import Any, Dict, List, Optional

from .client import Client
from .errors import ApiError
from .report import Report, report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='python -m optfarm')
    commands = parser.add_subparsers(dest='command', required=True)
    shown = commands.add_parser(
        'report', help='print the report of a job',
        description='Reads the JSON of a job, as GET /v1/jobs/JOB answers it '
        'or as `optctl run` and `optctl submit --wait` print it with -o json.')
    shown.add_argument('file', nargs='?', default='-',
                       help='the JSON; "-", the default: standard input')
    shown.add_argument('--job', help='ask the server (OPTFARM_URL, '
                       'OPTFARM_TOKEN) for this job instead')
    shown.add_argument('--format', choices=('md', 'json', 'csv'), default='md',
                       help='Markdown for a pull request, or the rows')
    shown.add_argument('--title', default='', help='of the Markdown')
    shown.add_argument('--check', action='store_true',
                       help='exit with 1 when the job or a gate failed')
    return parser


def _read(args: argparse.Namespace) -> Report:
    if args.job:
        return report(Client().job(args.job))
    if args.file == '-':
        job: Any = json.load(sys.stdin)
    else:
        with open(args.file, encoding='utf-8') as file:
            job = json.load(file)
    if not isinstance(job, dict) or 'state' not in job:
        raise ValueError(f'{args.file} is not the JSON of a job: it has no '
                         '"state"')
    return report(job)


def _write(found: Report, args: argparse.Namespace) -> None:
    if args.format == 'md':
        sys.stdout.write(found.to_markdown(args.title))
        return
    rows: List[Dict[str, Any]] = found.to_dicts()
    if args.format == 'json':
        json.dump(rows, sys.stdout, indent=1)
        sys.stdout.write('\n')
    elif rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main(words: Optional[List[str]] = None) -> int:
    """Exit codes: 0; 1 with --check for a failed job; 2 when there is no
    report to print."""
    args = _parser().parse_args(words)
    try:
        found = _read(args)
    except (ApiError, OSError, ValueError) as error:
        print(f'optfarm report: {error}', file=sys.stderr)
        return 2
    _write(found, args)
    return 1 if args.check and not found.passed else 0


if __name__ == '__main__':
    sys.exit(main())
