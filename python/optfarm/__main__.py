"""python -m optfarm: a job for a pipeline, and a job's outcome for people and
programs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import pathlib
import sys
from typing import Any, List, Optional

from .client import Client
from .errors import ApiError, Timeout, ToolMissing
from .report import Report, report
from .spec import is_graph


def _add_report(commands: Any) -> None:
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
    shown.set_defaults(work=_report)


def _add_job(commands: Any) -> None:
    job = commands.add_parser(
        'job', help='submit a model, wait, and write the report',
        description='For pipelines: exits with 1 when the job or a gate '
        'failed. The server is OPTFARM_URL, the token OPTFARM_TOKEN.')
    job.add_argument('model')
    job.add_argument('--recipe', required=True,
                     help='a built-in name, or a YAML or JSON file')
    job.add_argument('--calibration', default='', help='a folder of samples')
    job.add_argument('--labels', default='')
    job.add_argument('--input_mean', type=_maybe_float)
    job.add_argument('--input_std', type=_maybe_float)
    job.add_argument('--device', action='append', default=[],
                     help='a name, any, none, any:TAG or tag:TAG; default: any')
    job.add_argument('--threads', default='', help='such as 1,4')
    job.add_argument('--tag', action='append', default=[])
    job.add_argument('--name', default='')
    job.add_argument('--request_id', default='',
                     help='one id, one job: for instance the commit')
    job.add_argument('--timeout', type=float, default=3600, help='seconds')
    job.add_argument('--out_model', default='',
                     help='where the optimized model goes: a .pb, .onnx or '
                     '.tflite file')
    job.add_argument('--out_report', default='',
                     help='where the Markdown goes; default: standard output')
    job.add_argument('--out_json', default='', help="where the job's JSON goes")
    job.add_argument('--title', default='', help='of the Markdown')
    job.set_defaults(work=_job)


def _maybe_float(text: str) -> Optional[float]:
    # Pipelines pass what was not given as an empty text.
    return float(text) if text else None


def _write(path: str, text: str) -> None:
    if path:
        pathlib.Path(path).write_text(text, encoding='utf-8')
    else:
        sys.stdout.write(text)


def _job(args: argparse.Namespace) -> int:
    farm = Client()
    # Looked at before the job: nobody wants to wait an hour for that.
    formats = [] if not args.out_model or is_graph(args.out_model) else [
        pathlib.Path(args.out_model).suffix[1:]]
    devices = [one for one in args.device if one] or ['any']
    job = farm.submit(
        args.model, args.recipe, calibration=args.calibration or None,
        labels=args.labels or None, input_mean=args.input_mean,
        input_std=args.input_std, out_formats=formats,
        devices=devices[0] if len(devices) == 1 else devices,
        threads=[int(one) for one in args.threads.split(',') if one],
        tags=[one for one in args.tag if one], name=args.name,
        request_id=args.request_id or None)
    print(f"job {job['job_id']}", file=sys.stderr)
    job = farm.wait(job, args.timeout, check=False)
    found = report(job)
    if args.out_json:
        _write(args.out_json, json.dumps(job, indent=1) + '\n')
    _write(args.out_report, found.to_markdown(args.title))
    is_missing = any(not one.artifact for one in found.exports)
    if args.out_model and found.bytes_after and not is_missing:
        farm.download_model(job, args.out_model)
    return 0 if found.passed else 1


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


def _report(args: argparse.Namespace) -> int:
    found = _read(args)
    rows = found.to_dicts()
    if args.format == 'md':
        _write('', found.to_markdown(args.title))
    elif args.format == 'json':
        _write('', json.dumps(rows, indent=1) + '\n')
    elif rows:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        _write('', text.getvalue())
    return 1 if args.check and not found.passed else 0


def main(words: Optional[List[str]] = None) -> int:
    """Exit codes: 0; 1 for a failed job or gate; 2 when there is no answer."""
    parser = argparse.ArgumentParser(prog='python -m optfarm')
    commands = parser.add_subparsers(dest='command', required=True)
    _add_report(commands)
    _add_job(commands)
    args = parser.parse_args(words)
    try:
        code: int = args.work(args)
        return code
    except (ApiError, OSError, Timeout, ToolMissing, TypeError,
            ValueError) as error:
        print(f'optfarm {args.command}: {error}', file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
