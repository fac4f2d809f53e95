"""Errors as exceptions, with the server's message."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class ApiError(Exception):
    """The server rejected a call. `code` is the canonical name of the error
    ('NOT_FOUND'), `status` the HTTP status, `problem` the whole response."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code: str = str(problem.get('code', ''))
        self.detail: str = str(problem.get('detail', ''))
        super().__init__(f'{self.code or status}: {self.detail}')


class InvalidArgument(ApiError):
    """The request is invalid; the message says what to change."""


class Unauthenticated(ApiError):
    """The server requires a token, or rejected this one."""


class PermissionDenied(ApiError):
    """The token may not do this."""


class NotFound(ApiError):
    """There is no such job, device or file."""


class Conflict(ApiError):
    """The same request id was used for something else."""


class Unavailable(ApiError):
    """The server cannot be reached, or is starting or stopping. `status` is 0
    if there was no response."""


class Timeout(Exception):
    """The caller's timeout expired; the job continues."""


class ToolMissing(Exception):
    """What was asked for needs optctl on this machine, and it is not there."""


class LocalFailure(Exception):
    """A job on this machine could not run. `code` is optctl's exit code."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


class JobFailed(Exception):
    """A job ended as FAILED or CANCELLED. `job` is the whole job."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = dict(job)
        failure: Mapping[str, Any] = job.get('failure') or {}
        super().__init__(f"job {job.get('job_id')} {job.get('state')}: "
                         f"{failure.get('message', '')}")


class TuneFailed(Exception):
    """A tune failed or was cancelled. `tune` is the whole tune."""

    def __init__(self, tune: Mapping[str, Any]) -> None:
        self.tune = dict(tune)
        super().__init__(f"tune {tune.get('tune_id')} {tune.get('state')}: "
                         f"{tune.get('failure', '')}")


_BY_STATUS = {
    400: InvalidArgument,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, problem: Optional[Mapping[str, Any]]) -> ApiError:
    """The exception for a response with this status."""
    return _BY_STATUS.get(status, ApiError)(status, problem or {})
