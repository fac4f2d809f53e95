"""A report as Markdown for a pull request, and as HTML for a notebook."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, List, Optional, Sequence

if TYPE_CHECKING:
    from .report import Report, Row, Verdict

_MARKS = {'YES': '✅', 'NO': '❌', 'UNCLEAR': '❔', 'BASELINE': ''}
_MOST_WARNINGS = 10


def plain(text: str) -> str:
    """Text that Markdown shows as it is: names in a job are anybody's words,
    and must not become links, mentions or cells of a table."""
    text = ' '.join(text.split())
    text = text.replace('&', '&amp;').replace('<', '&lt;')
    text = text.replace('>', '&gt;')
    text = re.sub(r'([\\`*_{}\[\]()#+!|~])', r'\\\1', text)
    return (text.replace('@', '@\u200b').replace('://', '&#58;//')
            .replace('www.', 'www&#46;'))


def human_bytes(size: int) -> str:
    """1191957 -> '1.19 MB'."""
    for limit, unit in ((1e9, 'GB'), (1e6, 'MB'), (1e3, 'kB')):
        if size >= limit:
            return f'{size / limit:.3g} {unit}'
    return f'{size} B'


def _row_of(found: Report, verdict: Verdict) -> Optional[Row]:
    for row in found.rows:
        if (row.variant, row.device, row.threads) == (
                verdict.variant, verdict.device, verdict.threads):
            return row
    return None


def _cells(found: Report, verdict: Verdict) -> List[str]:
    row = _row_of(found, verdict)
    size = row.file_bytes if row else (
        found.bytes_before if verdict.answer == 'BASELINE'
        else found.bytes_after)
    top1 = (found.top1_before if verdict.answer == 'BASELINE'
            else found.top1_after)
    return [
        verdict.variant,
        verdict.device or '–',
        str(verdict.threads) if verdict.threads else '–',
        human_bytes(size) if size else '–',
        f'{row.median_ms:.3g} ms{" (noisy)" if row.noisy else ""}'
        if row else '–',
        f'{top1:.2f} %' if top1 is not None else '–',
        f'{_MARKS.get(verdict.answer, "")} {verdict.text}'.strip(),
    ]


_HEADS = ('variant', 'device', 'threads', 'size', 'median', 'top-1', 'verdict')


def headline(found: Report) -> str:
    """The outcome in one line."""
    if not found.passed:
        return f'❌ {found.state}: {found.failure or "no reason is known"}'
    answers = [one for one in found.verdicts if one.answer != 'BASELINE']
    for answer in ('NO', 'UNCLEAR', 'YES'):
        for one in answers:
            if one.answer == answer:
                where = f' on {one.device}' if one.device else ''
                return f'{_MARKS[answer]} {one.variant}{where}: {one.text}'
    return '✅ passed'


def _table(found: Report) -> List[str]:
    if not found.verdicts:
        return []
    lines = ['| ' + ' | '.join(_HEADS) + ' |', '|---|---|--:|--:|--:|--:|---|']
    lines += ['| ' + ' | '.join(plain(cell) for cell in _cells(found, one)) +
              ' |' for one in found.verdicts]
    return [*lines, '']


def _details(summary: str, items: Sequence[str]) -> List[str]:
    if not items:
        return []
    return ['<details><summary>' + summary + '</summary>', '',
            *(f'- {plain(item)}' for item in items), '', '</details>', '']


def _count(count: int, thing: str) -> str:
    return f'{count} {thing}' + ('' if count == 1 else 's')


def comment(found: Report, title: str = '') -> str:
    """The whole comment, ending in a newline."""
    what = title or ' '.join(word for word in (
        found.name or found.model, found.recipe and f'({found.recipe})')
        if word) or 'Optfarm'
    lines = [f'### {plain(what)}', '', plain(headline(found)), '',
             *_table(found)]
    missed = [gate for gate in found.gates if not gate.passed]
    lines += [f'- ❌ **{plain(gate.name)}**: {plain(gate.message)}'
              for gate in missed]
    lines += [''] if missed else []
    held = [f'{gate.name}: {gate.message}' for gate in found.gates
            if gate.passed]
    lines += _details(f'{_count(len(held), "gate")} held', held)
    lines += _details(_count(len(found.exports), 'other format'), [
        f'{one.artifact}: {one.summary}' if one.artifact else
        f'no {one.format}: {"; ".join(one.problems)}'
        for one in found.exports])
    warned = list(found.warnings[:_MOST_WARNINGS])
    if len(found.warnings) > _MOST_WARNINGS:
        warned.append(f'and {len(found.warnings) - _MOST_WARNINGS} more')
    lines += _details(_count(len(found.warnings), 'warning'), warned)
    if found.job_id:
        lines += [f'Job `{re.sub("[^A-Za-z0-9._-]", "", found.job_id)}`', '']
    return '\n'.join(lines).rstrip('\n') + '\n'


def html_page(found: Report) -> str:
    """A fragment of HTML: headline and table."""
    cells = [[html.escape(cell) for cell in _cells(found, one)]
             for one in found.verdicts]
    rows = ''.join('<tr>' + ''.join(f'<td>{cell}</td>' for cell in row) +
                   '</tr>' for row in cells)
    heads = ''.join(f'<th>{head}</th>' for head in _HEADS)
    table = (f'<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>'
             '</table>' if cells else '')
    return f'<p>{html.escape(headline(found))}</p>{table}'
