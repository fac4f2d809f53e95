// How measurements went over time: series of one model, recipe, device, variant
// and thread count, several at once, with regressions marked.

import { useMemo, useState } from 'preact/hooks';
import { post } from '../lib/api';
import { expectedOf } from '../lib/expected';
import { bytes, clock, micros, num, plural, times } from '../lib/format';
import { usePoll } from '../lib/poll';
import { go, setParameters, to, type Route } from '../lib/route';
import type { Regression, Request, Series, SeriesHistory, SeriesPoint } from '../lib/types';
import { Chart, Spark, type Line } from '../parts/chart';
import { Table } from '../parts/table';
import { Ago, Card, Empty, ErrorNote, Head, Loaded, Pill, Search, Switch } from '../parts/ui';

type Metric = 'MEDIAN_US' | 'P90_US' | 'PEAK_MEMORY_BYTES' | 'FILE_SIZE_BYTES';

const METRICS: Record<Metric, { label: string; of: (point: SeriesPoint) => number; format: (value: number) => string }> = {
  MEDIAN_US: { label: 'Median', of: (point) => point.median_us, format: micros },
  P90_US: { label: 'p90', of: (point) => point.p90_us, format: micros },
  PEAK_MEMORY_BYTES: { label: 'Memory', of: (point) => num(point.peak_memory_bytes), format: bytes },
  FILE_SIZE_BYTES: { label: 'File', of: (point) => num(point.file_size_bytes), format: bytes },
};
const COLORS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5', '--series-6'];
const MOST_POINTS = 1000;

function keyOf(series: Series | undefined): string {
  if (!series) return '';
  return [series.project, series.model_name, series.recipe_name, series.device, series.variant, series.threads].join('|');
}

function nameOf(series: Series | undefined): string {
  if (!series) return '';
  return `${series.model_name}, ${series.variant}${series.variant === 'float' ? ` (${series.recipe_name})` : ''}, ` +
    `${series.device}, ${plural(series.threads, 'thread')}`;
}

function lineOf(history: SeriesHistory, color: string, metric: Metric, regression: Regression | undefined): Line {
  const { of } = METRICS[metric];
  // Two points of one moment would hide each other.
  let last = 0;
  const moments = history.points.map((point) => {
    last = Math.max(last + 0.001, Date.parse(point.create_time) / 1000);
    return last;
  });
  const values = history.points.map(of);
  return {
    label: nameOf(history.series), color, times: moments, values, ...expectedOf(values),
    doubtful: history.points.map((point) => point.noisy),
    marked: history.points.map((point) => point.result_id === regression?.newest?.result_id),
  };
}

function useSeries(parameters: URLSearchParams, metric: Metric) {
  const filter: Request<'ResultFilter'> = {};
  for (const [key, name] of [['model', 'model'], ['recipe', 'recipe_name'], ['device', 'device'], ['variant', 'variant'], ['tag', 'tag']] as const) {
    const value = parameters.get(key);
    if (value) filter[name] = value;
  }
  const inputs = [JSON.stringify(filter)];
  const history = usePoll((signal) => post<{ series: SeriesHistory[]; more_series: boolean }>(
    '/v1/results:history', { filter, max_series: 100, max_points: MOST_POINTS }, signal), 15_000, inputs);
  const regressions = usePoll((signal) => post<{ regressions: Regression[]; judged: number; too_few_points: number }>(
    '/v1/results:regressions', { filter, rule: { metric } }, signal), 30_000, [...inputs, metric]);
  return { history, regressions };
}

function SeriesTable(props: {
  all: SeriesHistory[];
  chosen: string[];
  metric: Metric;
  regressions: Map<string, Regression>;
  toggle: (key: string) => void;
}) {
  const { of, format } = METRICS[props.metric];
  const newest = (history: SeriesHistory) => history.points[history.points.length - 1]!;
  return (
    <Card title="Series" note="Choose what the chart shows; the newest measurement first" flush>
      <Table label="Series" rows={props.all} id={(history) => keyOf(history.series)}
        rowClass={(history) => (props.chosen.includes(keyOf(history.series)) ? 'chosen' : '')}
        columns={[
          {
            title: 'Series', key: (history) => nameOf(history.series), show: (history) => {
              const key = keyOf(history.series);
              const at = props.chosen.indexOf(key);
              return (
                <label class="check">
                  <input type="checkbox" checked={at >= 0} onChange={() => props.toggle(key)} />
                  {at >= 0 && <span class="legend-dot" style={{ background: `var(${COLORS[at % COLORS.length]})`, margin: 0 }} />}
                  <span class="break">{nameOf(history.series)}</span>
                </label>
              );
            },
          },
          { title: 'Trend', wide: true, width: '150px', show: (history) => <Spark values={history.points.slice(-60).map(of)} label={`Trend of ${nameOf(history.series)}`} /> },
          { title: 'Points', number: true, wide: true, show: (history) => history.points.length, key: (history) => history.points.length },
          { title: 'Newest', number: true, show: (history) => format(of(newest(history))), key: (history) => of(newest(history)) },
          { title: 'When', number: true, wide: true, show: (history) => <Ago time={newest(history).create_time} />, key: (history) => newest(history).create_time },
          {
            title: 'Judged', show: (history) => {
              const regression = props.regressions.get(keyOf(history.series));
              return regression ? <span title={regression.message}><Pill tone="bad">{times(regression.ratio)} of its past</Pill></span> : <span class="muted">–</span>;
            },
          },
        ]} />
    </Card>
  );
}

interface PointRow {
  history: SeriesHistory;
  point: SeriesPoint;
  color: string;
}

function PointsTable({ chosen, metric }: { chosen: { history: SeriesHistory; color: string }[]; metric: Metric }) {
  const { of, format } = METRICS[metric];
  const rows = useMemo(() => chosen
    .flatMap(({ history, color }) => history.points.map((point): PointRow => ({ history, point, color })))
    .sort((a, b) => num(b.point.result_id) - num(a.point.result_id)), [chosen]);
  return (
    <Card title="Measurements" note={plural(rows.length, 'point')} flush>
      <Table label="Measurements" rows={rows} id={(row) => row.point.result_id} rowHeight={38} columns={[
        { title: 'When', show: ({ point, color }) => <span class="nowrap"><span class="legend-dot" style={{ background: `var(${color})` }} />{clock(point.create_time)}</span> },
        { title: METRICS[metric].label, number: true, show: ({ point }) => <>{format(of(point))}{point.noisy && <span class="tag unsure">noisy</span>}</>, key: ({ point }) => of(point) },
        { title: 'Graph', wide: true, show: ({ point }) => <span class="mono muted">{point.measured_sha256.slice(0, 12)}</span> },
        { title: 'Measured by', wide: true, show: ({ point }) => <span class="muted">{point.build_version}</span> },
        { title: 'Job', show: ({ point }) => <a class="nowrap" href={to('jobs', point.job_id)}>{point.job_id}</a> },
      ]} />
    </Card>
  );
}

export function HistoryPage({ route }: { route: Route }) {
  const { parameters } = route;
  const metric = (parameters.get('metric') ?? 'MEDIAN_US') as Metric;
  const { history, regressions } = useSeries(parameters, metric);
  const [picked, setPicked] = useState<string[]>();
  const all = useMemo(() => (history.data?.series ?? []).filter((one) => one.points.length > 0), [history.data]);
  const found = useMemo(() => new Map((regressions.data?.regressions ?? []).map((one) => [keyOf(one.series), one])), [regressions.data]);
  // Those that went on for a while, until somebody chooses.
  const longest = useMemo(() => [...all].sort((a, b) => Math.min(b.points.length, 2) - Math.min(a.points.length, 2)), [all]);
  const keys = picked ?? longest.slice(0, 2).map((one) => keyOf(one.series));
  const chosen = useMemo(() => keys
    .map((key, index) => ({ history: all.find((one) => keyOf(one.series) === key), color: COLORS[index % COLORS.length]! }))
    .filter((one): one is { history: SeriesHistory; color: string } => one.history !== undefined), [all, keys.join('\n')]);
  const lines = useMemo(() => chosen.map(({ history: one, color }) => lineOf(one, color, metric, found.get(keyOf(one.series)))), [chosen, metric, found]);
  const toggle = (key: string) => setPicked(keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key].slice(-COLORS.length));
  const set = (key: string) => (value: string) => setParameters(route, { [key]: value });
  const filtered = ['model', 'recipe', 'device', 'variant', 'tag'].some((key) => parameters.get(key));
  return (
    <>
      <Head title="History" />
      <div class="filters">
        <Search main label="Model" value={parameters.get('model') ?? ''} onChange={set('model')} placeholder="file name or SHA-256" />
        <Search label="Recipe" value={parameters.get('recipe') ?? ''} onChange={set('recipe')} />
        <Search label="Device" value={parameters.get('device') ?? ''} onChange={set('device')} />
        <Search label="Variant" value={parameters.get('variant') ?? ''} onChange={set('variant')} />
        <Search label="Tag" value={parameters.get('tag') ?? ''} onChange={set('tag')} />
      </div>
      {regressions.error && !regressions.error.unreachable && <ErrorNote error={regressions.error} />}
      <Loaded data={history.data} error={history.error} retry={history.refresh}>
        {() => all.length === 0 ? (
          <Empty icon="history" title={filtered ? 'No series fits' : 'Nothing has been measured yet'}>
            {!filtered && 'Submit a job with a device; each measurement becomes a point here.'}
          </Empty>
        ) : (
          <>
            <Card title={<Switch label="Metric" value={metric} onChange={set('metric')}
              options={Object.entries(METRICS).map(([value, { label }]) => ({ value: value as Metric, label }))} />}
              note="A click on a point opens its job; drag to zoom. Hollow: noisy. Red: worse than its past.">
              {lines.length > 0
                ? <Chart label={`History of ${lines.map((line) => line.label).join('; ')}`} lines={lines} format={METRICS[metric].format}
                    onPick={(line, point) => go(to('jobs', chosen[line]!.history.points[point]!.job_id))} />
                : <Empty icon="history" title="No series is chosen" />}
              <div class="keys">
                {chosen.map(({ history: one, color }) => (
                  <span class="small" key={keyOf(one.series)}><span class="legend-dot" style={{ background: `var(${color})` }} />{nameOf(one.series)}</span>
                ))}
                {lines.some((line) => line.values.length > 4) && <span class="small muted">Band: what the points before let one expect.</span>}
              </div>
            </Card>
            <SeriesTable all={all} chosen={keys} metric={metric} regressions={found} toggle={toggle} />
            {history.data?.more_series && <p class="notice calm">There are more series; filters show them.</p>}
            {chosen.length > 0 && <PointsTable chosen={chosen} metric={metric} />}
          </>
        )}
      </Loaded>
    </>
  );
}
