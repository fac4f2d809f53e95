"""The client: uploads, jobs, results."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import time
import urllib.parse
import uuid
from typing import (Any, Callable, Dict, Iterator, List, Mapping, Optional,
                    Sequence, Tuple, Union)

from . import data
from .data import Path, Source
from .errors import ApiError, JobFailed, NotFound, Timeout
from .transport import Transport

# A job as the server's JSON has it; the fields are those of optfarm.v1.Job.
Job = Dict[str, Any]
# UNITS: bytes sent so far and to be sent in all.
Progress = Callable[[int, int], None]

ENDED = ('SUCCEEDED', 'FAILED', 'CANCELLED')

_PART_BYTES = 8 << 20
# Longer than the pause between two signs of life of a stream.
_STREAM_TIMEOUT = 60.0


class _File:
    """A local file by its digest."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        digest = hashlib.sha256()
        self.size = 0
        with open(path, 'rb') as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                self.size += len(piece)
        self.sha256 = digest.hexdigest()

    def digest(self) -> Dict[str, str]:
        return {'sha256': self.sha256, 'size_bytes': str(self.size)}

    def named(self) -> Dict[str, Any]:
        return {'name': self.path.name, 'digest': self.digest()}


def _job_id(job: Union[str, Mapping[str, Any]]) -> str:
    return job if isinstance(job, str) else str(job['job_id'])


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe='')


class Client:
    """A farm's server.

    Every method raises ApiError if the server rejects a call, and Unavailable
    if it cannot be reached after several retries.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None,
                 *, token_file: Optional[Path] = None, timeout: float = 60.0,
                 ca_file: Optional[str] = None,
                 cert_file: Optional[str] = None,
                 key_file: Optional[str] = None) -> None:
        """`url` is http://HOST:PORT or https://HOST:PORT; default: the
        environment variable OPTFARM_URL. The token is `token`, or the first
        line of `token_file`, or OPTFARM_TOKEN. `timeout` is in seconds, for one
        request. `ca_file` adds a CA to those of the system.
        """
        url = url or os.environ.get('OPTFARM_URL', 'http://127.0.0.1:7071')
        if token is None and token_file is not None:
            lines = pathlib.Path(token_file).read_text().splitlines() or ['']
            token = lines[0].strip()
        if token is None:
            token = os.environ.get('OPTFARM_TOKEN')
        self._http = Transport(url, token, timeout, ca_file, cert_file,
                               key_file)

    # Files.

    def upload(self, paths: Sequence[Path],
               progress: Optional[Progress] = None) -> List[str]:
        """Makes sure that the server has these files; returns their SHA-256.
        Uploads only missing files, and resumes interrupted uploads."""
        files = [_File(pathlib.Path(path)) for path in paths]
        self._send(files, progress)
        return [file.sha256 for file in files]

    def _missing(self, files: Sequence[_File]) -> List[_File]:
        by_sha = {file.sha256: file for file in files}
        distinct = list(by_sha.values())
        missing: List[_File] = []
        for at in range(0, len(distinct), 10000):
            answer = self._http.call(
                'POST', '/v1/blobs:findMissing', {
                    'digests':
                        [file.digest() for file in distinct[at:at + 10000]]
                })
            missing += [by_sha[one['sha256']] for one in answer['missing']]
        return missing

    def _send(self, files: Sequence[_File],
              progress: Optional[Progress]) -> None:
        missing = self._missing(files)
        total = sum(file.size for file in missing)
        done = 0
        for file in missing:
            for sent in self._send_one(file):
                if progress:
                    progress(done + sent, total)
            done += file.size

    def _send_one(self, file: _File) -> Iterator[int]:
        path = f'/v1/blobs/{file.sha256}'
        state = self._http.call(
            'GET', f'{path}/upload?digest.size_bytes={file.size}')
        if state['complete']:
            return
        offset = int(state['committed_bytes'])
        with open(file.path, 'rb') as source:
            source.seek(offset)
            while True:
                piece = source.read(_PART_BYTES)
                headers = {}
                if piece:
                    last = offset + len(piece) - 1
                    headers['Content-Range'] = (f'bytes {offset}-{last}/'
                                                f'{file.size}')
                # Sending a part twice is harmless: what is there is skipped.
                self._http.call('PUT', path, headers=headers, data=piece)
                offset += len(piece)
                yield offset
                if offset >= file.size:
                    return

    def download(self, sha256: str, path: Path) -> None:
        """Downloads a file from the server and checks it."""
        target = pathlib.Path(path)
        part = target.with_name(target.name + '.part')
        digest = hashlib.sha256()
        connection, response = self._http.send('GET', f'/v1/blobs/{sha256}')
        try:
            with open(part, 'wb') as file:
                while piece := response.read(1 << 20):
                    digest.update(piece)
                    file.write(piece)
        finally:
            connection.close()
        if digest.hexdigest() != sha256:
            part.unlink()
            raise ApiError(0, {
                'code': 'DATA_LOSS',
                'detail': f'{sha256} came as {digest.hexdigest()}'
            })
        part.replace(target)

    def download_artifact(self, job: Union[str, Mapping[str, Any]], name: str,
                          path: Path) -> None:
        """Downloads a file of a job, for instance 'optimized.pb'."""
        known = self.job(job).get('artifacts') or []
        for artifact in known:
            if artifact['name'] == name:
                self.download(artifact['digest']['sha256'], path)
                return
        raise NotFound(404, {
            'code': 'NOT_FOUND',
            'detail': f'the job has no file {name!r}; it has ' +
                      ', '.join(one['name'] for one in known)
        })

    # Jobs.

    def submit(self, model: Path, recipe: Union[str, Mapping[str, Any]], *,
               calibration: Union[Path, Source, Sequence[Source],
                                  None] = None,
               labels: Union[Path, Source, None] = None,
               labels_offset: int = 0,
               input_mean: Optional[float] = None,
               input_std: Optional[float] = None,
               inputs: Sequence[Mapping[str, Any]] = (),
               outputs: Sequence[str] = (),
               devices: Sequence[str] = (), threads: Sequence[int] = (),
               name: str = '', no_cache: bool = False,
               request_id: Optional[str] = None, webhook: str = '',
               progress: Optional[Progress] = None) -> Job:
        """Uploads missing files and submits a job.

        `model` is a GraphDef file (.pb). `recipe` is the name of one that
        comes with the workers ('int8'), or a mapping with the fields of
        optfarm.v1.Recipe. `calibration` is a folder of pictures, sounds or
        TFRecord files, or what optfarm.samples and optfarm.input_file make,
        one or several; `labels` is a file, or what optfarm.labels makes.
        Grey levels are fed as (value - input_mean) / input_std where neither
        the recipe nor a source has a scale.
        Without `devices` nothing is measured. One `request_id` makes one job,
        however often it is submitted. `webhook` is an address that the server
        tells when the job has ended.
        """
        files = [_File(pathlib.Path(model))]
        spec: Dict[str, Any] = {
            'name': name,
            'model': files[0].named(),
            'no_cache': no_cache,
            'inputs': [dict(one) for one in inputs],
            'outputs': list(outputs),
        }
        if isinstance(recipe, str):
            spec['recipe_name'] = recipe
        else:
            spec['recipe'] = dict(recipe)
        sources = []
        for source in _sources(calibration, labels, input_mean, input_std):
            named = [(name, _File(path)) for name, path in source.files]
            files += [file for _, file in named]
            sources.append({
                **source.fields(),
                'files': [{'path': name, 'digest': file.digest()}
                          for name, file in named],
            })
        if sources:
            spec['calibration'] = {
                'sources': sources,
                'labels_offset': labels_offset,
            }
        if devices:
            spec['benchmark'] = {
                'devices': list(devices),
                'threads': list(threads)
            }
        self._send(files, progress)
        answer = self._http.call(
            'POST', '/v1/jobs', {'spec': spec, 'webhook': webhook},
            headers={'Idempotency-Key': request_id or str(uuid.uuid4())})
        return answer['job']

    def job(self, job: Union[str, Mapping[str, Any]]) -> Job:
        """Everything the server knows about a job."""
        return self._http.call('GET', f'/v1/jobs/{_quoted(_job_id(job))}')

    def jobs(self, **filters: str) -> Iterator[Job]:
        """Jobs, newest first; filters: state, recipe, model, device, name."""
        words = ' '.join(f'{key}={value}' for key, value in filters.items())
        yield from self._pages('/v1/jobs', {'filter': words}, 'jobs')

    def cancel(self, job: Union[str, Mapping[str, Any]],
               reason: str = '') -> Job:
        return self._http.call('POST',
                               f'/v1/jobs/{_quoted(_job_id(job))}:cancel',
                               {'reason': reason})

    def events(self, job: Union[str, Mapping[str, Any]],
               after: int = 0) -> Iterator[Tuple[str, Dict[str, Any]]]:
        """The events of a job, (kind, event), until it ends. Kinds: job_state,
        task_state, progress, log. Resumes after a lost connection."""
        path = f'/v1/jobs/{_quoted(_job_id(job))}/events'
        last = str(after) if after else ''
        breaks = 0
        while True:
            try:
                for number, kind, data in self._http.events(
                        path, last, _STREAM_TIMEOUT):
                    if kind == 'error':
                        break
                    if kind == 'end':
                        return
                    breaks = 0
                    last = number
                    yield kind, data
                else:
                    # Nothing to say: the job had ended before.
                    if self.job(job)['state'] in ENDED:
                        return
            except ApiError as error:
                if error.status not in (0, 429, 503, 504) or breaks >= 6:
                    raise
            breaks += 1
            time.sleep(min(10.0, 0.2 * 2**breaks))

    def logs(self, job: Union[str, Mapping[str, Any]]) -> Iterator[str]:
        """The output of the job's tasks, until the job ends."""
        for kind, event in self.events(job):
            if kind == 'log':
                yield event['log']['text']

    def wait(self, job: Union[str, Mapping[str, Any]],
             timeout: Optional[float] = None, *,
             check: bool = True) -> Job:
        """Waits until a job has ended and returns it.

        Raises Timeout after `timeout` seconds and, with `check`, JobFailed
        if it did not succeed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while True:
            found = self.job(job)
            if found['state'] in ENDED:
                if check and found['state'] != 'SUCCEEDED':
                    raise JobFailed(found)
                return found
            if deadline is not None and time.monotonic() + pause > deadline:
                raise Timeout(f"job {found['job_id']} is {found['state']} "
                              f'after {timeout} s')
            time.sleep(pause)
            pause = min(2.0, pause * 1.5)

    # What there is to see.

    def devices(self) -> List[Dict[str, Any]]:
        return list(self._pages('/v1/devices', {}, 'devices'))

    def results(self, *, full: bool = False,
                **filters: Union[str, int]) -> Iterator[Dict[str, Any]]:
        """Measurements, newest first; filters: model, recipe_name, device,
        job_id, variant, threads, tag, from_time, until_time (RFC 3339)."""
        parameters = {key: str(value) for key, value in filters.items()}
        if full:
            parameters['full'] = 'true'
        yield from self._pages('/v1/results', parameters, 'results')

    def compare(self, job_a: str, job_b: str) -> List[Dict[str, Any]]:
        """Compares the measurements of two jobs."""
        query = urllib.parse.urlencode({'a.job_id': job_a, 'b.job_id': job_b})
        return self._http.call('GET', f'/v1/results:compare?{query}')['rows']

    def _pages(self, path: str, parameters: Mapping[str, str],
               key: str) -> Iterator[Dict[str, Any]]:
        asked = dict(parameters)
        while True:
            answer = self._http.call(
                'GET', f'{path}?{urllib.parse.urlencode(asked)}')
            yield from answer[key]
            asked['page_token'] = answer['next_page_token']
            if not asked['page_token']:
                return


def _sources(calibration: Union[Path, Source, Sequence[Source], None],
             labels: Union[Path, Source, None],
             mean: Optional[float], std: Optional[float]) -> List[Source]:
    """All sources of a job. A scale is for those that have none."""
    found: List[Source] = []
    if isinstance(calibration, Source):
        found = [calibration]
    elif isinstance(calibration, (list, tuple)):
        found = list(calibration)
    elif calibration is not None:
        found = [data.samples(calibration)]
    found = [
        dataclasses.replace(one, mean=mean, std=std)
        if one.role != 'LABELS' and one.mean is None and one.std is None
        else one for one in found
    ]
    if labels is not None:
        found.append(labels if isinstance(labels, Source)
                     else data.labels(labels))
    return found
