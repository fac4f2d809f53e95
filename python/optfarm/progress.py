"""One line that says how far a job is: in a terminal, or in a notebook."""

from __future__ import annotations

import importlib
import shutil
import sys
from typing import Any, Callable, List, Mapping, Optional, TextIO, Union

# True: show; False: do not; None: where somebody looks, that is, in a terminal
# or a notebook; or a function that gets each line.
Shown = Union[bool, None, Callable[[str], None]]


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    ipython = sys.modules.get('IPython')
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, 'kernel')


class _Notebook:
    """Replaces one output of the cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        display = importlib.import_module('IPython.display')
        # Plain text: a job's words are not to become HTML.
        content = {'text/plain': text}
        if self._handle is None:
            self._handle = display.display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def end(self) -> None:
        self._handle = None


class _Terminal:
    """Rewrites one line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._width = 0

    def show(self, text: str) -> None:
        text = text[:shutil.get_terminal_size().columns - 1]
        self._out.write('\r' + text.ljust(self._width))
        self._out.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            self._out.write('\n')
            self._out.flush()
            self._width = 0


class Line:
    """Shows lines, each once."""

    def __init__(self, shown: Shown = None,
                 out: Optional[TextIO] = None) -> None:
        out = out or sys.stderr
        self._last = ''
        self._call: Optional[Callable[[str], None]] = None
        self._where: Union[_Notebook, _Terminal, None] = None
        if callable(shown):
            self._call = shown
        elif shown is not False:
            if in_notebook():
                self._where = _Notebook()
            elif shown or out.isatty():
                self._where = _Terminal(out)

    def show(self, text: str) -> None:
        """Says `text`, unless it was the last thing said."""
        if text == self._last:
            return
        self._last = text
        if self._call is not None:
            self._call(text)
        elif self._where is not None:
            self._where.show(text)

    def bytes(self, done: int, total: int) -> None:
        """How much of an upload is sent."""
        share = 100 * done // total if total else 100
        self.show(f'sending {total / 1e6:.1f} MB: {share} %')

    def end(self) -> None:
        """Leaves what was said last where it is."""
        if self._where is not None:
            self._where.end()


def describe(job: Mapping[str, Any]) -> str:
    """A job's state and what its tasks do, in one line."""
    parts: List[str] = [f"job {job.get('job_id', '')} "
                        f"{str(job.get('state', '')).lower()}"]
    for task in job.get('tasks') or ():
        name = task.get('device') or 'optimize'
        state = task.get('state')
        if state == 'LEASED':
            share = 100 * float(task.get('progress') or 0)
            words = str(task.get('progress_message') or '')
            parts.append(f'{name} {share:.0f} % {words}'.strip())
        elif state == 'READY':
            waits = ('a worker' if task.get('kind') == 'OPTIMIZE'
                     else 'the device')
            parts.append(f'{name} waits for {waits}')
        elif state not in ('BLOCKED', None):
            parts.append(f"{name} {str(state).lower().replace('task_', '')}")
    return ' | '.join(parts)
