"""The client: uploads, jobs, results."""

from __future__ import annotations

import hashlib
import logging
import os
import pathlib
import tempfile
import time
import urllib.parse
import uuid
from typing import (Any, Dict, Iterator, List, Mapping, Optional, Sequence,
                    Tuple, Union, cast)

from . import data, local, spec
from . import progress as shown
from .calls import JobLike, Message, job_id, quoted
from .data import Calibration, Path, Source
from .errors import ApiError, JobFailed, NotFound, PermissionDenied, Timeout
from .operations import OperatorCalls
from .report import Report, report
from .results import ResultCalls
from .spec import Duration, Inputs, Recipe
from .transport import Transport
from .tuning import TuneCalls, tune_spec
from .uploads import File, Progress, send

# A job as the server's JSON has it; the fields are those of optfarm.v1.Job.
Job = Message
# 'any': the first device that is free; 'none'; names; 'any:TAG': one of those
# with a tag; 'tag:TAG': all of them.
Devices = Union[str, Sequence[str], None]

ENDED = ('SUCCEEDED', 'FAILED', 'CANCELLED')

# Longer than the pause between two signs of life of a stream.
_STREAM_TIMEOUT = 60.0
_LOG = logging.getLogger('optfarm')


class Client(ResultCalls, OperatorCalls, TuneCalls):
    """A farm's server.

    Every method raises ApiError if the server rejects a call, and Unavailable
    if it cannot be reached after several retries.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None,
                 *, token_file: Optional[Path] = None, timeout: float = 60.0,
                 ca_file: Optional[str] = None,
                 cert_file: Optional[str] = None,
                 key_file: Optional[str] = None,
                 optctl: Optional[Path] = None) -> None:
        """`url` is http://HOST:PORT or https://HOST:PORT, or several with
        commas between them, of which the next is asked when one does not
        answer; default: the environment variable OPTFARM_URL. The token is `token`, or the first
        line of `token_file`, or OPTFARM_TOKEN. `timeout` is in seconds, for one
        request. `ca_file` adds a CA to those of the system. `optctl` is the
        program that freezes models and reads YAML recipes; default:
        OPTFARM_OPTCTL, or the one in PATH.
        """
        address: str = url or os.environ.get('OPTFARM_URL') or (
            'http://127.0.0.1:7071')
        if token is None and token_file is not None:
            lines = pathlib.Path(token_file).read_text().splitlines() or ['']
            token = lines[0].strip()
        if token is None:
            token = os.environ.get('OPTFARM_TOKEN')
        self._optctl = optctl
        self._http = Transport(address, token, timeout, ca_file, cert_file,
                               key_file)

    # Files.

    def upload(self, paths: Sequence[Path],
               progress: Optional[Progress] = None) -> List[str]:
        """Makes sure that the server has these files; returns their SHA-256.
        Uploads only missing files, and resumes interrupted uploads."""
        files = [File(pathlib.Path(path)) for path in paths]
        send(self._http, files, progress)
        return [file.sha256 for file in files]

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

    def download_artifact(self, job: JobLike, name: str, path: Path) -> None:
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

    def download_model(self, job: JobLike, path: Path) -> None:
        """Downloads the optimized model in the format that the end of `path`
        names: .pb, .onnx or .tflite. Where the job did not make it
        (`out_formats` of `submit`), optctl makes the last two on this machine,
        reads them back and compares their answers. Raises NotFound for a
        format that cannot hold the result, with all reasons, where the job
        tried it."""
        if spec.is_graph(path):
            self.download_artifact(job, 'optimized.pb', path)
            return
        end = pathlib.Path(path).suffix.lower()[1:]
        found = self.job(job)
        made = _export(found, end)
        if made and made.get('artifact'):
            self.download_artifact(found, made['artifact'], path)
            return
        if made and made.get('problems'):
            raise NotFound(404, {
                'code': 'NOT_FOUND',
                'detail': f'the result cannot be written as {end}: ' +
                          '; '.join(made['problems'])})
        # Before the download: it may be missing.
        program = local.find_optctl(self._optctl)
        with tempfile.TemporaryDirectory(prefix='optfarm-') as folder:
            graph = pathlib.Path(folder) / 'optimized.pb'
            self.download_artifact(found, 'optimized.pb', graph)
            local.convert(graph, path, found.get('report') or {}, program)

    # Jobs.

    def submit(self, model: Path, recipe: Recipe, *,
               calibration: Calibration = None,
               labels: Union[Path, Source, None] = None,
               labels_offset: int = 0,
               input_mean: Optional[float] = None,
               input_std: Optional[float] = None,
               inputs: Inputs = None,
               outputs: Union[str, Sequence[str]] = (),
               checkpoint: Optional[Path] = None,
               saved_model_tags: Union[str, Sequence[str]] = (),
               sensitivity: bool = False,
               histograms: Union[str, Sequence[str]] = (),
               out_formats: Union[str, Sequence[str]] = (),
               devices: Devices = 'any', threads: Sequence[int] = (),
               min_runs: int = 0, min_time: Optional[Duration] = None,
               max_time: Optional[Duration] = None, warmup_runs: int = 0,
               precision: Optional[float] = None, cpus: Sequence[int] = (),
               cool_down: Optional[Duration] = None,
               engines: Union[str, Sequence[str]] = (),
               name: str = '', tags: Union[str, Sequence[str]] = (),
               no_cache: bool = False, max_attempts: int = 0,
               deadlines: Optional[Mapping[str, Duration]] = None,
               request_id: Optional[str] = None, webhook: str = '',
               traceparent: Optional[str] = None,
               progress: Optional[Progress] = None) -> Job:
        """Uploads missing files and submits a job.

        The model and what is done to it:

        model: a frozen graph (.pb), an ONNX or a TensorFlow Lite model. A
            SavedModel's folder, or a graph with a `checkpoint`, is frozen
            first, by optctl on this machine, and needs `outputs`;
            `saved_model_tags` choose among a SavedModel's graphs.
        recipe: the name of one that comes with the workers ('int8'), a YAML
            file (read by optctl), a JSON file, or a mapping with the fields
            of optfarm.v1.Recipe.
        inputs, outputs: where the model does not say them:
            inputs={'image': (1, 224, 224, 3)}, outputs='softmax'.
        sensitivity, histograms: also measure each quantized layer alone; show
            the values of these nodes. A recipe that is a name is then looked
            up by optctl.
        out_formats: formats to have the result in, such as 'tflite' or ['pb',
            'onnx']: the farm makes optimized.tflite, optimized.onnx. A job
            that gets none of them fails; with 'pb' among them it does not.

        Data:

        calibration: a folder of pictures, sounds or TFRecord files, {'input':
            'array.npy'}, or what optfarm.samples and optfarm.input_file make,
            one or several.
        labels, labels_offset: the samples' classes: a file, or what
            optfarm.labels makes; a number to add to each.
        input_mean, input_std: grey levels are fed as (value - input_mean) /
            input_std where neither the recipe nor a source has a scale.

        Measurements:

        devices: 'any', the default: the first device that is free, or none
            where the farm has none; 'none'; names of devices; 'any:TAG' for
            one of those with a tag, 'tag:TAG' for all of them.
        threads, min_runs, min_time, max_time, warmup_runs, cpus: how to
            measure. Times are seconds or texts such as '90s'.
        precision: a fraction; runs go on until the interval of each median
            is as narrow.
        cool_down: longest time to wait for a cool and idle device.
        engines: 'onnxruntime', 'tflite' or both: also measure with these
            runtimes where a device has them; the result is written in their
            formats.

        The job: `name` and `tags` to find it by; `no_cache`: do the work even
        if it has been done before; `max_attempts` and `deadlines` ({'queue':
        '1h', 'run': ..., 'job': ...}); `webhook`: an address that the server
        tells when the job has ended; `traceparent`: the span that the job's
        trace is a child of, by default that of the environment variable
        TRACEPARENT. One `request_id` makes one job, however often it is
        submitted.
        """
        conditions = spec.conditions(
            threads=threads, min_runs=min_runs, min_time=min_time,
            max_time=max_time, warmup_runs=warmup_runs, precision=precision,
            cpus=cpus, cool_down=cool_down,
            engines=spec.names(engines, 'engines'))
        tags = spec.names(tags, 'tags')
        made: Message = {
            'name': name,
            'tags': tags,
            'no_cache': no_cache,
            'max_attempts': max_attempts,
            'deadlines': spec.deadlines(deadlines or {}),
            'inputs': spec.tensors(inputs),
            'outputs': spec.names(outputs, 'outputs'),
            'out_formats': spec.out_formats(out_formats),
            **self._recipe(recipe, sensitivity,
                           spec.names(histograms, 'histograms')),
        }
        found = data.sources(calibration, labels, input_mean, input_std)
        asked = self._devices(devices, tags)
        if asked:
            made['benchmark'] = {**conditions, 'devices': asked}
        self._send(made, model, found, labels_offset, outputs, checkpoint,
                   saved_model_tags, progress)
        answer = self._http.call(
            'POST', '/v1/jobs', {
                # What is not asked for is not sent: servers of former releases
                # do not know every field.
                'spec': {key: value for key, value in made.items() if value},
                'webhook': webhook,
            },
            headers=_headers(request_id, traceparent))
        job: Job = answer['job']
        return job

    def tune(self, model: Path, devices: Devices = 'any', *,
             calibration: Calibration,
             labels: Union[Path, Source, None] = None, labels_offset: int = 0,
             input_mean: Optional[float] = None,
             input_std: Optional[float] = None, inputs: Inputs = None,
             outputs: Union[str, Sequence[str]] = (),
             checkpoint: Optional[Path] = None,
             saved_model_tags: Union[str, Sequence[str]] = (),
             objective: str = 'latency', min_top1: Optional[float] = None,
             min_agreement: Optional[float] = None,
             min_snr: Optional[float] = None,
             budget: Optional[Duration] = None,
             threads: Union[int, Sequence[int]] = 1,
             cpus: Sequence[int] = (),
             max_measured: int = 0, calibration_samples: int = 0,
             seed: int = 0, one_for_all: bool = False, fresh: bool = False,
             tags: Union[str, Sequence[str]] = (),
             request_id: Optional[str] = None,
             progress: Optional[Progress] = None) -> Message:
        """Uploads missing files and begins a tune: the farm searches for the
        variants of the model that are worth having on the devices, by
        measuring there. Returns the tune; `wait_tune` waits for its end, and
        optfarm.tuned says what it found for each device.

        model, data, inputs and outputs: as for submit; `calibration` is
            required.
        devices: names, 'tag:TAG' for all with a tag, or 'any' for the first
            that is free.
        objective: ship the best of 'latency' or 'size' that keeps the bound.
        min_top1, min_agreement, min_snr: the bound, one of them: points of
            top-1 accuracy (-0.5 allows half a point less than float), percent
            of samples with float's best class, decibel.
        budget: begin nothing new after this time.
        threads: to measure with; of several, up to 4, one is chosen with the
            variant.
        cpus, max_measured, calibration_samples, seed, one_for_all, fresh:
            as in optctl tune.

        One `request_id` makes one tune, however often it is asked for.
        """
        tags = spec.names(tags, 'tags')
        job: Message = {
            'tags': tags,
            'inputs': spec.tensors(inputs),
            'outputs': spec.names(outputs, 'outputs'),
        }
        made = tune_spec(
            job, self._devices(devices, tags), objective=objective,
            bounds={'min_top1': min_top1, 'min_agreement': min_agreement,
                    'min_snr': min_snr},
            budget=budget,
            threads=threads, cpus=cpus,
            numbers={'max_measured': max_measured,
                     'calibration_samples': calibration_samples,
                     'seed': seed},
            one_for_all=one_for_all, fresh=fresh)
        found = data.sources(calibration, labels, input_mean, input_std)
        self._send(job, model, found, labels_offset, outputs, checkpoint,
                   saved_model_tags, progress)
        answer = self._http.call(
            'POST', '/v1/tunes', {'spec': made},
            headers={'Idempotency-Key': request_id or str(uuid.uuid4())})
        tune: Message = answer['tune']
        return tune

    def _send(self, made: Message, model: Path, found: Sequence[Source],
              labels_offset: int, outputs: Union[str, Sequence[str]],
              checkpoint: Optional[Path],
              saved_model_tags: Union[str, Sequence[str]],
              progress: Optional[Progress]) -> None:
        """Puts model and data into a job's spec, and sends what is missing of
        their files."""
        with tempfile.TemporaryDirectory(prefix='optfarm-') as folder:
            files = [self._model(model, folder, outputs, checkpoint,
                                 saved_model_tags)]
            made['model'] = files[0].named()
            files += _add_data(made, found, labels_offset)
            line = shown.Line(False if progress else None)
            send(self._http, files, progress or line.bytes)
            line.end()

    def _recipe(self, recipe: Recipe, sensitivity: bool,
                histograms: Sequence[str]) -> Dict[str, Any]:
        adds = sensitivity or bool(histograms)
        if isinstance(recipe, Mapping):
            made = dict(recipe)
        elif os.fspath(recipe).lower().endswith('.json'):
            made = spec.recipe_of_json(recipe)
        elif spec.is_recipe_file(recipe):
            made = local.recipe_of_yaml(recipe, self._optctl)
        elif adds:
            made = local.recipe(os.fspath(recipe), self._optctl)
        else:
            return {'recipe_name': os.fspath(recipe)}
        if adds:
            made['verification'] = {
                **(made.get('verification') or {}),
                'sensitivity': sensitivity,
                'histograms': list(histograms),
            }
        return {'recipe': made}

    def _model(self, model: Path, folder: str,
               outputs: Union[str, Sequence[str]], checkpoint: Optional[Path],
               saved_model_tags: Union[str, Sequence[str]]) -> File:
        """The file to send."""
        path = pathlib.Path(model).expanduser()
        if not path.exists():
            raise ValueError(f'there is no model {str(path)!r}')
        if local.is_frozen_first(path, checkpoint):
            path = local.freeze(path, pathlib.Path(folder), outputs=outputs,
                                checkpoint=checkpoint,
                                saved_model_tags=saved_model_tags,
                                optctl=self._optctl)
        elif saved_model_tags:
            raise ValueError(f'{str(path)!r} has no tags; SavedModels have')
        return File(path)

    def _devices(self, asked: Devices, tags: Sequence[str]) -> List[str]:
        """Names for the server."""
        if asked is None or asked == 'none':
            return []
        if asked == 'any':
            return self._free_device(tags)
        made: List[str] = []
        for one in spec.names(asked, 'devices'):
            if one in ('any', 'none'):
                raise ValueError(f'devices has {one!r} beside others')
            for device in (self._tagged(one[4:]) if one.startswith('tag:')
                           else [one]):
                if device not in made:
                    made.append(device)
        return made

    def _tagged(self, tag: str) -> List[str]:
        found = [one['info']['name'] for one in self.devices()
                 if one['state'] != 'DISABLED' and
                 tag in (one['info'].get('tags') or ())]
        if not found:
            raise NotFound(404, {
                'code': 'NOT_FOUND',
                'detail': f'devices: none in service has the tag {tag!r}'})
        return found

    def _free_device(self, tags: Sequence[str]) -> List[str]:
        try:
            known = self.devices()
        except PermissionDenied as error:
            _LOG.warning('nothing will be measured: this token may not see '
                         'devices (%s); name one, or say devices="none"',
                         error.detail)
            return []
        busy: List[str] = []
        for device in known:
            name = str(device['info']['name'])
            if device['state'] == 'AVAILABLE' or (
                    device['state'] == 'RESERVED' and
                    device.get('reserved_for_tag') in tags):
                _LOG.info('benchmarking on %s', name)
                return [name]
            if device['state'] in ('BUSY', 'COOLING'):
                busy.append(name)
        if not busy:
            _LOG.warning('nothing will be measured: no device is available')
        return busy[:1]

    def job(self, job: JobLike) -> Job:
        """Everything the server knows about a job."""
        found: Job = self._http.call('GET', f'/v1/jobs/{quoted(job_id(job))}')
        return found

    def jobs(self, **filters: str) -> Iterator[Job]:
        """Jobs, newest first; filters: state, recipe, model, device, name."""
        words = ' '.join(f'{key}={value}' for key, value in filters.items())
        yield from self._pages('/v1/jobs', {'filter': words}, 'jobs')

    def cancel(self, job: JobLike, reason: str = '') -> Job:
        """Ends a job as CANCELLED; harmless where it has ended."""
        found: Job = self._http.call(
            'POST', f'/v1/jobs/{quoted(job_id(job))}:cancel',
            {'reason': reason})
        return found

    def events(self, job: JobLike, after: int = 0
               ) -> Iterator[Tuple[str, Dict[str, Any]]]:
        """The events of a job, (kind, event), until it ends. Kinds: job_state,
        task_state, progress, log. Resumes after a lost connection."""
        path = f'/v1/jobs/{quoted(job_id(job))}/events'
        last = str(after) if after else ''
        breaks = 0
        while True:
            try:
                for number, kind, event in self._http.events(
                        path, last, _STREAM_TIMEOUT):
                    if kind == 'error':
                        break
                    if kind == 'end':
                        return
                    breaks = 0
                    last = number
                    yield kind, event
                else:
                    # Nothing to say: the job had ended before.
                    if self.job(job)['state'] in ENDED:
                        return
            except ApiError as error:
                if error.status not in (0, 429, 503, 504) or breaks >= 6:
                    raise
            breaks += 1
            time.sleep(min(10.0, 0.2 * 2**breaks))

    def watch_jobs(self) -> Iterator[Optional[Job]]:
        """The jobs of the project as they change, with their verdicts, for
        as long as one listens. None means that changes may have been missed:
        at the beginning, and after a lost connection."""
        breaks = 0
        while True:
            try:
                for _, kind, event in self._http.events(
                        '/v1/jobs:watch', '', _STREAM_TIMEOUT):
                    if kind in ('error', 'end'):
                        break
                    breaks = 0
                    yield event.get('job')
            except ApiError as error:
                if error.status not in (0, 429, 503, 504) or breaks >= 6:
                    raise
            breaks += 1
            time.sleep(min(10.0, 0.2 * 2**breaks))

    def verdicts(self, *jobs: JobLike) -> Dict[str, List[Dict[str, Any]]]:
        """What jobs, at most 200, came to, by the job's id."""
        asked = urllib.parse.urlencode(
            [('job_ids', job_id(job)) for job in jobs])
        answer = self._http.call('GET', f'/v1/jobs:verdicts?{asked}')
        return {one['job_id']: one['verdicts'] for one in answer['jobs']}

    def logs(self, job: JobLike) -> Iterator[str]:
        """The output of the job's tasks, until the job ends."""
        for kind, event in self.events(job):
            if kind == 'log':
                yield event['log']['text']

    def wait(self, job: JobLike, timeout: Optional[float] = None, *,
             check: bool = True, progress: shown.Shown = None) -> Job:
        """Waits until a job has ended and returns it.

        `progress` shows a line: True, False, None (in terminals and
        notebooks), or a function that gets each.

        Raises Timeout after `timeout` seconds and, with `check`, JobFailed
        if it did not succeed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        line = shown.Line(progress)
        try:
            while True:
                found = self.job(job)
                line.show(shown.describe(found))
                if found['state'] in ENDED:
                    if check and found['state'] != 'SUCCEEDED':
                        raise JobFailed(found)
                    return found
                if (deadline is not None and
                        time.monotonic() + pause > deadline):
                    raise Timeout(f"job {found['job_id']} is "
                                  f"{found['state']} after {timeout} s; it "
                                  'goes on')
                time.sleep(pause)
                pause = min(2.0, pause * 1.5)
        finally:
            line.end()

    def run(self, model: Path, recipe: Recipe, *,
            timeout: Optional[float] = None, check: bool = True,
            **options: Any) -> Report:
        """Submits a job, waits for it and returns its report. Options are
        those of submit."""
        job = self.submit(model, recipe, **options)
        return report(self.wait(job, timeout, check=check))


def _headers(request_id: Optional[str],
             traceparent: Optional[str]) -> Dict[str, str]:
    """Of a request that submits a job."""
    headers = {'Idempotency-Key': request_id or str(uuid.uuid4())}
    if traceparent is None:
        traceparent = os.environ.get('TRACEPARENT')
    if traceparent:
        headers['traceparent'] = traceparent
    return headers


def _export(job: Job, end: str) -> Optional[Mapping[str, Any]]:
    """What the report says of the format that such a name asks for."""
    for made in (job.get('report') or {}).get('exports') or ():
        if str(made.get('format', '')).lower() == end:
            return cast(Mapping[str, Any], made)
    return None


def _add_data(made: Message, found: Sequence[Source],
              labels_offset: int) -> List[File]:
    """Puts the sources into the spec; returns their files."""
    files: List[File] = []
    sources = []
    for source in found:
        named = [(name, File(path)) for name, path in source.files]
        files += [file for _, file in named]
        sources.append({
            **source.fields(),
            'files': [{'path': name, 'digest': file.digest()}
                      for name, file in named],
        })
    if sources:
        made['calibration'] = {'sources': sources,
                               'labels_offset': labels_offset}
    return files
