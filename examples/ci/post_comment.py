#!/usr/bin/env python3
"""Puts a Markdown file on a pull request, in place of what it put there before.

usage: post_comment.py REPORT.md

Where to is read from the variables that the pipeline sets. GitHub Actions:
GITHUB_API_URL, GITHUB_REPOSITORY, PULL_REQUEST, GITHUB_TOKEN. GitLab CI:
CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID, GITLAB_TOKEN. Does nothing
outside of a pull request.
"""

import json
import os
import pathlib
import sys
import urllib.error
import urllib.request
from typing import Any, Dict, Optional

MARK = '<!-- optfarm -->'
# GitHub and GitLab refuse longer ones.
MOST_CHARACTERS = 60000
MOST_PAGES = 10


class Host:
    """Where comments are: a list of them, and what a new one is."""

    def __init__(self, comments: str, update: str, method: str,
                 headers: Dict[str, str]) -> None:
        self.comments = comments
        # Address of one, with {} for its id.
        self.update = update
        self.method = method
        self.headers = headers

    def call(self, method: str, url: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            url, None if body is None else json.dumps(body).encode(),
            {**self.headers, 'Content-Type': 'application/json'},
            method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def find(self) -> Optional[str]:
        """Id of the comment that an earlier run made."""
        for page in range(1, MOST_PAGES + 1):
            found = self.call('GET',
                              f'{self.comments}?per_page=100&page={page}')
            for comment in found:
                if str(comment.get('body', '')).startswith(MARK):
                    return str(comment['id'])
            if len(found) < 100:
                break
        return None


def find_host() -> Optional[Host]:
    env = os.environ
    if env.get('CI_MERGE_REQUEST_IID'):
        notes = (f"{env['CI_API_V4_URL']}/projects/{env['CI_PROJECT_ID']}"
                 f"/merge_requests/{env['CI_MERGE_REQUEST_IID']}/notes")
        return Host(notes, notes + '/{}', 'PUT',
                    {'PRIVATE-TOKEN': env['GITLAB_TOKEN']})
    if env.get('PULL_REQUEST'):
        issues = (f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}"
                  '/issues')
        return Host(f"{issues}/{env['PULL_REQUEST']}/comments",
                    issues + '/comments/{}', 'PATCH',
                    {'Authorization': f"Bearer {env['GITHUB_TOKEN']}"})
    return None


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    text = MARK + '\n' + pathlib.Path(sys.argv[1]).read_text(encoding='utf-8')
    try:
        host = find_host()
        if host is None:
            print('post_comment: this is no pull request')
            return 0
        body = {'body': text[:MOST_CHARACTERS]}
        known = host.find()
        if known is None:
            host.call('POST', host.comments, body)
        else:
            host.call(host.method, host.update.format(known), body)
    except KeyError as error:
        print(f'post_comment: {error.args[0]} is not set', file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(f'post_comment: {error}; may the token write comments?',
              file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
