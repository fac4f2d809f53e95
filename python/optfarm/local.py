"""What optctl does on this machine for this package: whole jobs without a
server, models that must be frozen first, recipes as YAML."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import data
from .data import Calibration, Path, Source
from .errors import InvalidArgument, LocalFailure, Timeout, ToolMissing
from .report import Report, report
from .spec import Duration, Inputs, Recipe, names, seconds
from .spec import out_formats as spec_formats
from .spec import tensors

_LAYOUTS = {'SAMPLE_AXIS_FIRST': 'samples', 'CONSTANT': 'constant'}
# optctl's exit codes for a job that ran: it succeeded, it failed, a gate
# failed, or the model cannot work.
_RAN = (0, 1, 6, 7)
_USAGE = 2


def find_optctl(given: Optional[Path] = None) -> str:
    """Path of optctl: `given`, the environment variable OPTFARM_OPTCTL, or the
    one in PATH. Raises ToolMissing."""
    named = given or os.environ.get('OPTFARM_OPTCTL')
    found = shutil.which(str(named or 'optctl'))
    if found:
        return found
    raise ToolMissing(
        f'there is no program {str(named)!r}' if named else
        'optctl is not in PATH; install the package optctl, or name the '
        'program: the parameter optctl or the environment variable '
        'OPTFARM_OPTCTL')


def _fail(words: Sequence[str], code: int, err: str) -> Exception:
    lines = [line for line in err.replace('\r', '\n').splitlines()
             if line.strip()]
    text = lines[-1].strip() if lines else f'optctl ended with {code}'
    if code == _USAGE:
        # A mistake in the arguments is the same exception as over REST.
        return InvalidArgument(0, {'code': 'INVALID_ARGUMENT', 'detail': text})
    return LocalFailure(f'{" ".join(words[1:3])}: {text}', code)


def _call(words: Sequence[str], shows: bool, timeout: Optional[float],
          accepted: Sequence[int]) -> str:
    """The standard output of a run of optctl. Its progress goes to the
    terminal where there is one and `shows`."""
    with tempfile.TemporaryFile('w+', encoding='utf-8') as err:
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE,
                                  stderr=None if shows else err, text=True,
                                  timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise Timeout(f'optctl took more than {timeout} s and was ended'
                          ) from None
        if done.returncode in accepted and (done.stdout.strip() or
                                            done.returncode == 0):
            return done.stdout
        err.seek(0)
        raise _fail(words, done.returncode, err.read())


def _json(words: Sequence[str], shows: bool = False,
          timeout: Optional[float] = None,
          accepted: Sequence[int] = (0,)) -> Any:
    return json.loads(_call([*words, '-o', 'json'], shows, timeout, accepted))


def recipe(name_or_path: str, optctl: Optional[Path]) -> Dict[str, Any]:
    """A recipe with the fields of optfarm.v1.Recipe."""
    made: Dict[str, Any] = _json(
        [find_optctl(optctl), 'recipes', name_or_path])
    return made


def convert(graph: Path, path: Path, made: Mapping[str, Any],
            optctl: str) -> None:
    """Writes a job's graph in the format that the end of `path` names. `made`
    is the job's report."""
    flags = [_input_flag(one) for one in made.get('inputs') or ()]
    flags += [f"--outputs={one['name']}" for one in made.get('outputs') or ()]
    _call([optctl, 'graph', 'convert', f'--in_graph={os.fspath(graph)}',
           f'--out_graph={os.fspath(path)}', *flags], False, None, (0,))


def recipe_of_yaml(path: Path, optctl: Optional[Path]) -> Dict[str, Any]:
    """A YAML recipe with the fields of optfarm.v1.Recipe. optctl reads it, so
    that it means here what it means there."""
    file = pathlib.Path(path).expanduser()
    if not file.is_file():
        raise ValueError(f'there is no recipe file {str(file)!r}')
    return recipe(str(file.absolute()), optctl)


def _input_flag(spec: Mapping[str, Any]) -> str:
    if not spec.get('shape_known'):
        return f"--inputs={spec['name']}"
    return f"--inputs={spec['name']}:[{','.join(spec['shape'])}]"


def _model_flags(model: Path, recipe: str, inputs: Inputs,
                 outputs: Union[str, Sequence[str]],
                 checkpoint: Optional[Path],
                 saved_model_tags: Union[str, Sequence[str]],
                 signature: str) -> List[str]:
    flags = [str(pathlib.Path(model).expanduser()), f'--recipe={recipe}']
    flags += [_input_flag(one) for one in tensors(inputs)]
    flags += [f'--outputs={one}' for one in names(outputs, 'outputs')]
    if checkpoint:
        flags.append(f'--checkpoint={os.fspath(checkpoint)}')
    tags = names(saved_model_tags, 'saved_model_tags')
    if tags:
        flags.append(f"--tags={','.join(tags)}")
    if signature:
        flags.append(f'--signature={signature}')
    return flags


def is_frozen_first(model: Path, checkpoint: Optional[Path]) -> bool:
    """SavedModels, their archives, and graphs with a checkpoint."""
    path = pathlib.Path(model).expanduser()
    if checkpoint or path.is_dir():
        return True
    with open(path, 'rb') as file:
        start = file.read(265)
    return (start.startswith((b'PK\x03\x04', b'\x1f\x8b')) or
            start[257:262] == b'ustar')


def freeze(model: Path, folder: Path, *, outputs: Union[str, Sequence[str]],
           checkpoint: Optional[Path],
           saved_model_tags: Union[str, Sequence[str]],
           optctl: Optional[Path]) -> pathlib.Path:
    """Freezes a SavedModel's folder, or a graph with a checkpoint, into
    `folder`; returns the file."""
    path = pathlib.Path(model).expanduser()
    wanted = names(outputs, 'outputs')
    if not wanted:
        raise ValueError(f'{str(path)!r} has variables and is frozen first; '
                         "give outputs='NODE', the nodes to keep")
    if path.is_file() and not checkpoint:
        raise ValueError(f'{str(path)!r} is an archive; unpack it and give '
                         "the SavedModel's folder")
    made = pathlib.Path(folder) / f'{path.stem or "model"}.pb'
    kind = ('saved_model_dir' if path.is_dir() else
            'meta_graph' if path.suffix == '.meta' else 'graph')
    words = [find_optctl(optctl), 'graph', 'freeze', f'--input_{kind}={path}',
             f'--output_graph={made}',
             f"--output_node_names={','.join(wanted)}"]
    if checkpoint:
        words.append(f'--input_checkpoint={os.fspath(checkpoint)}')
    tags = names(saved_model_tags, 'saved_model_tags')
    if tags:
        words.append(f"--saved_model_tags={','.join(tags)}")
    _call(words, False, None, (0,))
    return made


def _scale_flags(found: Sequence[Source]) -> List[str]:
    scales = {(one.mean, one.std) for one in found if one.role != 'LABELS'}
    if len(scales) > 1:
        raise ValueError(
            'the sources have different scales, which a job on this machine '
            'cannot have; give one input_mean and input_std, or preprocessing '
            'in the recipe')
    mean, std = scales.pop() if scales else (None, None)
    return ([f'--input_mean={mean}'] if mean is not None else []) + (
        [f'--input_std={std}'] if std is not None else [])


def _member(source: Source) -> str:
    path = str(source.files[0][1])
    return f'{path}:{source.member}' if source.member else path


def _data_flags(found: Sequence[Source], labels_offset: int) -> List[str]:
    flags = _scale_flags(found)
    for source in found:
        if source.role == 'SAMPLES':
            flags.append(f'--calibration={source.folder}')
        elif source.role == 'LABELS':
            flags.append(f'--labels={_member(source)}')
        else:
            name = f'{source.input}=' if source.input else ''
            flags.append(f'--calibration={name}{_member(source)}')
            if source.layout:
                flags.append(f'--layout={name}{_LAYOUTS[source.layout]}')
    if labels_offset:
        flags.append(f'--labels_offset={labels_offset}')
    return flags


def run(model: Path, recipe: Recipe, *, calibration: Calibration = None,
        labels: Union[Path, Source, None] = None, labels_offset: int = 0,
        input_mean: Optional[float] = None, input_std: Optional[float] = None,
        inputs: Inputs = None, outputs: Union[str, Sequence[str]] = (),
        checkpoint: Optional[Path] = None,
        saved_model_tags: Union[str, Sequence[str]] = (), signature: str = '',
        sensitivity: bool = False,
        histograms: Union[str, Sequence[str]] = (),
        out_formats: Union[str, Sequence[str]] = (),
        measure: bool = True, threads: Sequence[int] = (), min_runs: int = 0,
        max_time: Optional[Duration] = None,
        out_graph: Optional[Path] = None, out_dir: Optional[Path] = None,
        timeout: Optional[float] = None, progress: bool = True,
        optctl: Optional[Path] = None) -> Report:
    """Optimizes and benchmarks a model on this machine, without a server.

    It is the job that Client.submit sends to a farm; parameters with the same
    names mean the same. `out_graph` is where the optimized model goes, as an
    ONNX or TensorFlow Lite model when the name ends in .onnx or .tflite;
    `out_dir` is a folder for all files, among them those of `out_formats`.
    Returns the report also when a gate
    failed: look at `Report.passed`.

    Raises ToolMissing without optctl, InvalidArgument for a mistake in the
    arguments, LocalFailure if the job could not run, and Timeout after
    `timeout` seconds.
    """
    program = find_optctl(optctl)
    found = data.sources(calibration, labels, input_mean, input_std)
    words = [program, 'run', *_model_flags(
        model, _recipe_flag(recipe), inputs, outputs, checkpoint,
        saved_model_tags, signature), *_data_flags(found, labels_offset)]
    words += ['--sensitivity'] if sensitivity else []
    words += [f'--histogram={one}' for one in names(histograms, 'histograms')]
    words += [f'--out_format={one.lower()}'
              for one in spec_formats(out_formats)]
    words += [] if measure else ['--measure=false']
    if threads:
        words.append(f"--threads={','.join(map(str, threads))}")
    if min_runs:
        words.append(f'--min_runs={min_runs}')
    if max_time is not None:
        words.append(f"--max_time={seconds(max_time, 'max_time'):g}s")
    words += [f'--{name}={os.fspath(path)}' for name, path in
              (('out_graph', out_graph), ('out_dir', out_dir)) if path]
    return report(_json(words, progress and os.isatty(2), timeout, _RAN))


def _recipe_flag(recipe: Recipe) -> str:
    if not isinstance(recipe, Mapping):
        return os.fspath(recipe)
    # JSON is YAML, but the fields of a recipe file are not those of the
    # message.
    raise TypeError('a recipe on this machine is a built-in name or a YAML '
                    f'file, not a mapping ({sorted(recipe)}); optctl recipes '
                    'prints one to start from')
