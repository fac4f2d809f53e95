"""Optfarm from Python: submit a model, wait, read the report and the numbers.

    import optfarm

    farm = optfarm.Client('http://127.0.0.1:7071', token='...')
    job = farm.submit('model.pb', recipe='int8', calibration='images/')
    job = farm.wait(job)
    for row in optfarm.report(job).rows:
        print(row.device, row.variant, row.threads, row.median_ms)
    for verdict in optfarm.report(job).verdicts:
        print(verdict.device, verdict.variant, verdict.text)

It speaks the server's REST door (optfarm-server --http=HOST:PORT) and needs
nothing but the standard library.
"""

from .client import Client
from .data import Source, input_file, labels, samples
from .errors import (ApiError, Conflict, InvalidArgument, JobFailed, NotFound,
                     PermissionDenied, Timeout, Unauthenticated, Unavailable)
from .report import Gate, Report, Row, Verdict, report

__all__ = [
    'ApiError', 'Client', 'Conflict', 'Gate', 'InvalidArgument', 'JobFailed',
    'NotFound', 'PermissionDenied', 'Report', 'Row', 'Source', 'Timeout',
    'Unauthenticated', 'Unavailable', 'Verdict', 'input_file', 'labels',
    'report', 'samples'
]
__version__ = '0.1.0'
