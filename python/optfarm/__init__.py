"""Optfarm from Python: submit a model, wait, read the report and the numbers.

    import optfarm

    farm = optfarm.Client('http://127.0.0.1:7071', token='...')
    job = farm.submit('model.pb', recipe='int8', calibration='images/')
    job = farm.wait(job)
    for row in optfarm.report(job).rows:
        print(row.device, row.variant, row.threads, row.median_ms)
    for verdict in optfarm.report(job).verdicts:
        print(verdict.device, verdict.variant, verdict.text)

It speaks the server's REST API (optfarm-server --http=HOST:PORT) and needs
nothing but the standard library. Without a server, optctl does the work on this
machine:

    report = optfarm.run('model.onnx', 'int8', calibration='images/',
                         out_graph='model_int8.onnx')
"""

from .client import Client
from .data import Source, input_file, labels, samples
from .errors import (ApiError, Conflict, InvalidArgument, JobFailed,
                     LocalFailure, NotFound, PermissionDenied, Timeout,
                     ToolMissing, TuneFailed, Unauthenticated, Unavailable)
from .local import run
from .report import Export, Gate, Report, Row, Verdict, report
from .tables import to_dataframe, to_dicts
from .tuning import TunedDevice, Variant, tuned

__all__ = [
    'ApiError', 'Client', 'Conflict', 'Export', 'Gate', 'InvalidArgument',
    'JobFailed', 'LocalFailure', 'NotFound', 'PermissionDenied', 'Report',
    'Row', 'Source', 'Timeout', 'ToolMissing', 'TuneFailed', 'TunedDevice',
    'Unauthenticated', 'Unavailable', 'Variant', 'Verdict', 'input_file',
    'labels', 'report', 'run', 'samples', 'to_dataframe', 'to_dicts', 'tuned'
]
__version__ = '0.1.0'
