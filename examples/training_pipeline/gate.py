#!/usr/bin/env python3
"""The last step of a training pipeline: is the new model good enough in 8 bits?

Submits a model, waits, and ends with exit code 1 and the reasons when it lost
too much accuracy, is not small enough, or is too slow on the device it is for.
"""

import argparse
import pathlib
import sys
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'python'))
import optfarm  # pylint: disable=wrong-import-position


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('model', help='.pb, .onnx or .tflite file, or a '
                        "SavedModel's folder")
    parser.add_argument('--url', help='server, default: OPTFARM_URL')
    parser.add_argument('--token_file', help='default: OPTFARM_TOKEN')
    parser.add_argument('--recipe', default='int8')
    parser.add_argument('--calibration', required=True,
                        help='folder of pictures')
    parser.add_argument('--labels', help='class numbers of the pictures')
    parser.add_argument('--input_mean', type=float)
    parser.add_argument('--input_std', type=float)
    parser.add_argument('--device', action='append',
                        help='where to measure; may be given several times; '
                        "default: the first that is free; 'none': nowhere")
    parser.add_argument('--out_model',
                        help='where the result goes: a .pb, .onnx or .tflite '
                        'file')
    parser.add_argument('--request_id',
                        help='one id, one job: for instance the commit')
    parser.add_argument('--max_accuracy_drop', type=float, default=1.0,
                        help='of top-1, in percentage points; needs labels')
    parser.add_argument('--min_agreement', type=float, default=0.9,
                        help='share of pictures that keep their class')
    parser.add_argument('--max_latency_ms', type=float,
                        help='median, on every device, with one thread')
    parser.add_argument('--max_size_ratio', type=float, default=0.5)
    parser.add_argument('--timeout', type=float, default=3600, help='seconds')
    return parser.parse_args()


def complaints(found: optfarm.Report,
               args: argparse.Namespace) -> List[str]:
    """Why the model must not ship; none: it may."""
    bad = [f'gate {gate.name}: {gate.value:.4g} against {gate.bound:.4g} '
           f'{gate.message}' for gate in found.gates if not gate.passed]
    if found.top1_before is not None and found.top1_after is not None:
        drop = found.top1_before - found.top1_after
        if drop > args.max_accuracy_drop:
            bad.append(f'top-1 falls by {drop:.2f} points '
                       f'(at most {args.max_accuracy_drop})')
    if (found.top1_agreement is not None and
            found.top1_agreement < args.min_agreement):
        bad.append(f'only {found.top1_agreement:.3f} of the pictures keep '
                   f'their class (at least {args.min_agreement})')
    if found.bytes_after > found.bytes_before * args.max_size_ratio:
        bad.append(f'{found.bytes_after} bytes instead of '
                   f'{found.bytes_before}')
    for row in found.rows:
        if (args.max_latency_ms is not None and row.variant != 'float' and
                row.threads == 1 and row.median_ms > args.max_latency_ms):
            bad.append(f'{row.median_ms:.2f} ms on {row.device}'
                       f"{' (a noisy run)' if row.noisy else ''}")
    return bad


def main() -> int:
    args = parse()
    farm = optfarm.Client(args.url, token_file=args.token_file)
    try:
        job = farm.submit(args.model, args.recipe,
                          calibration=args.calibration, labels=args.labels,
                          input_mean=args.input_mean, input_std=args.input_std,
                          devices=args.device or 'any',
                          request_id=args.request_id)
        print('job', job['job_id'])
        job = farm.wait(job, args.timeout, check=False)
    except (optfarm.ApiError, optfarm.Timeout) as error:
        print('the farm did not answer the question:', error, file=sys.stderr)
        return 2
    found = optfarm.report(job)
    bad = complaints(found, args)
    if not found.passed and not bad:
        bad.append(found.failure or found.state)
    for row in found.rows:
        print(f'{row.device:12} {row.variant:12} {row.threads} threads '
              f'{row.median_ms:8.3f} ms')
    print(f'size {found.bytes_before} -> {found.bytes_after} bytes, top-1 '
          f'{found.top1_before} -> {found.top1_after}, agreement '
          f'{found.top1_agreement}')
    if args.out_model and found.bytes_after:
        farm.download_model(job, args.out_model)
    for reason in bad:
        print('NOT GOOD ENOUGH:', reason, file=sys.stderr)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
