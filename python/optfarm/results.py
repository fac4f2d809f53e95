"""Calls about measurements that are kept."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from .calls import Calls, JobLike, Message, job_id

_FIELDS = ('model', 'recipe_name', 'device', 'job_id', 'variant', 'threads',
           'tag', 'from_time', 'until_time', 'result_id')
_METRICS = ('MEDIAN_US', 'P90_US', 'PEAK_MEMORY_BYTES', 'FILE_SIZE_BYTES')


def _checked(filters: Mapping[str, Any]) -> Dict[str, Any]:
    for name in filters:
        if name not in _FIELDS:
            raise TypeError(f'results have no {name!r} to filter by; there '
                            f"is {', '.join(_FIELDS)}")
    return {name: value for name, value in filters.items()
            if value is not None}


def _metric(name: str) -> str:
    if name.upper() not in _METRICS:
        raise ValueError(f'there is no metric {name!r}; give one of '
                         + ', '.join(_METRICS))
    return name.upper()


class ResultCalls(Calls):
    """Stored results: lists, comparisons, history, regressions."""

    def results(self, *, full: bool = False,
                bounds: Optional[Mapping[str, Sequence[Optional[float]]]]
                = None, **filters: Any) -> Iterator[Message]:
        """Measurements, newest first.

        Filters: model, recipe_name, device, job_id, variant, threads, tag,
        from_time, until_time (RFC 3339), result_id. `bounds` has
        {'MEDIAN_US': (at_least, below)} with None for an open end. With
        `full` each has all of its runs and its times by op.
        """
        asked = _checked(filters)
        if full:
            asked['full'] = True
        if not bounds:
            yield from self._pages('/v1/results', asked, 'results')
            return
        ranges = []
        for name, (low, high) in bounds.items():
            bound: Message = {'metric': _metric(name)}
            bound.update({} if low is None else {'at_least': low})
            bound.update({} if high is None else {'below': high})
            ranges.append(bound)
        asked['metrics'] = ranges
        while True:
            answer = self._http.call('POST', '/v1/results:query', asked)
            yield from answer['results']
            asked['page_token'] = answer['next_page_token']
            if not asked['page_token']:
                return

    def compare(self, a: JobLike, b: JobLike) -> List[Message]:
        """Compares the measurements of two jobs, row by row: each has a, b,
        speedup with its interval, and the ratios of memory and size."""
        rows: List[Message] = self.comparison(a, b)['rows']
        return rows

    def comparison(self, a: JobLike = '', b: JobLike = '', *,
                   model_a: str = '', model_b: str = '') -> Message:
        """The same with the mean over all rows; of jobs, or of the models with
        these SHA-256."""
        found: Message = self._get('/v1/results:compare', {
            'a.job_id': a and job_id(a), 'b.job_id': b and job_id(b),
            'a.model_sha256': model_a, 'b.model_sha256': model_b})
        return found

    def history(self, *, max_series: int = 0, max_points: int = 0,
                **filters: Any) -> Message:
        """Measurements as series over time; filters as for results."""
        found: Message = self._http.call('POST', '/v1/results:history', {
            'filter': _checked(filters), 'max_series': max_series,
            'max_points': max_points})
        return found

    def regressions(self, *, rule: Optional[Mapping[str, Any]] = None,
                    limit: int = 0, **filters: Any) -> Message:
        """Series whose newest measurement is worse than those before. `rule`
        has the fields of optfarm.v1.RegressionRule; filters as for
        results."""
        found: Message = self._http.call('POST', '/v1/results:regressions', {
            'filter': _checked(filters), 'limit': limit,
            **({'rule': dict(rule)} if rule else {})})
        return found
