"""What the lint tests share: walking our sources and reporting problems.

A lint test is a script that takes the source folder, prints one line for each
problem and exits with 1 when there was one; 77 tells CTest that it was skipped.
"""

import pathlib
import sys

SKIP_CODE = 77
_NOT_OURS = {'.git', 'build', '__pycache__', '.cache', '.vscode', '.idea',
             # Seeds of the fuzzers: data, malformed on purpose.
             'corpus'}


class SourceTree:
    """The files of the source folder named on the command line."""

    def __init__(self):
        if len(sys.argv) != 2:
            sys.exit(f'usage: {sys.argv[0]} SOURCE_FOLDER')
        self.root = pathlib.Path(sys.argv[1]).resolve()
        self.problems = []

    def files(self, *suffixes):
        """Paths relative to the root, sorted; all files without suffixes."""
        return sorted(path.relative_to(self.root)
                      for path in self._walk(self.root)
                      if not suffixes or path.suffix in suffixes)

    def _walk(self, folder):
        for path in folder.iterdir():
            if path.name in _NOT_OURS or path.name.startswith('cmake-build'):
                continue
            if path.is_dir() and not path.is_symlink():
                yield from self._walk(path)
            elif path.is_file():
                yield path

    def read(self, relative):
        return (self.root / relative).read_text(encoding='utf-8')

    def problem(self, where, what):
        self.problems.append(f'{where}: {what}')

    def finish(self):
        """Prints the problems and ends the process."""
        for line in self.problems:
            print(line)
        sys.exit(1 if self.problems else 0)


def skip(reason):
    """Ends the process the way CTest counts as skipped."""
    print(f'SKIP: {reason}')
    sys.exit(SKIP_CODE)
