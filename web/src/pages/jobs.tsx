// All jobs, newest first and live, with what each waits for.

import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, get, query } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { clock, plural, span, when } from '../lib/format';
import { useJobFeed } from '../lib/feed';
import { modelOf, progressOf, recipeOf, whyJobWaits } from '../lib/job';
import { useNow, usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import { hasEnded, type Device, type Job, type JobState } from '../lib/types';
import { mainVerdict, useVerdicts } from '../lib/verdicts';
import { Overview } from '../parts/overview';
import { Table, type Column } from '../parts/table';
import { Ago, Bar, Card, Empty, ErrorNote, Head, Search, StatePill, Switch, Tags } from '../parts/ui';

interface Page {
  jobs: Job[];
  next_page_token: string;
}

const FIRST_PAGE = 100;
const LATER_PAGES = 500;
// UNITS: milliseconds between two looks, without and with a stream of changes.
const PERIOD = 2000;
const FED_PERIOD = 60_000;

/** Blanks separate terms of a filter; a term with one could not be said. */
function filterOf(parameters: URLSearchParams): string {
  return ['state', 'recipe', 'model', 'device', 'name']
    .map((key) => [key, (parameters.get(key) ?? '').trim()] as const)
    .filter(([, value]) => value !== '' && !/\s/.test(value))
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');
}

/**
 * The newest jobs before those that were known; both are in order, newest first.
 * What was known and is missing among the newest fits the filter no longer.
 */
function prepend(known: readonly Job[], newest: readonly Job[]): Job[] {
  if (newest.length < FIRST_PAGE) return [...newest];
  const ids = new Set(newest.map((job) => job.job_id));
  const oldest = when(newest[newest.length - 1]!.create_time);
  const stays = (job: Job, index: number) =>
    !ids.has(job.job_id) && (index >= 2 * FIRST_PAGE || when(job.create_time) <= oldest);
  return [...newest, ...known.filter(stays)];
}

function append(known: readonly Job[], older: readonly Job[]): Job[] {
  const ids = new Set(known.map((job) => job.job_id));
  return [...known, ...older.filter((job) => !ids.has(job.job_id))];
}

function replace(known: readonly Job[], changed: readonly Job[]): Job[] {
  const all = new Map(changed.map((job) => [job.job_id, job]));
  return known.map((job) => all.get(job.job_id) ?? job);
}

/** Whether jobs came between the two that nobody has seen. */
function isGap(known: readonly Job[], newest: readonly Job[]): boolean {
  if (known.length === 0 || newest.length < FIRST_PAGE) return false;
  const ids = new Set(newest.map((job) => job.job_id));
  return !known.slice(0, FIRST_PAGE).some((job) => ids.has(job.job_id));
}

function useJobs(filter: string, period: number) {
  const [jobs, setJobs] = useState<Job[]>();
  const [next, setNext] = useState('');
  const [error, setError] = useState<ApiError>();
  const loading = useRef(false);
  const current = useRef(filter);
  const known = useRef<readonly Job[]>([]);
  known.current = jobs ?? [];
  const ask = useCallback(async (size: number, token: string, extra: string, signal?: AbortSignal) =>
    get<Page>(`/v1/jobs${query({ filter: `${filter} ${extra}`.trim(), page_size: size, page_token: token })}`, signal),
  [filter]);
  useEffect(() => {
    current.current = filter;
    setJobs(undefined);
    setNext('');
    setError(undefined);
  }, [filter]);
  const newest = usePoll((signal) => ask(FIRST_PAGE, '', '', signal), period, [filter]);
  useEffect(() => {
    const page = newest.data;
    if (!page) return;
    if (isGap(known.current, page.jobs)) {
      setJobs(page.jobs);
      setNext(page.next_page_token);
      return;
    }
    setJobs((before) => prepend(before ?? [], page.jobs));
    setNext((before) => (before === '' ? page.next_page_token : before));
  }, [newest.data]);
  // Older jobs that still run change too.
  const older = (jobs ?? []).slice(FIRST_PAGE).filter((job) => !hasEnded(job)).slice(0, 20);
  usePoll(async (signal) => {
    const fresh = await Promise.all(older.map((job) => get<Job>(`/v1/jobs/${job.job_id}`, signal)));
    if (fresh.length > 0) setJobs((before) => replace(before ?? [], fresh));
    return fresh.length;
  }, 2 * period, [filter]);
  const more = useCallback(async () => {
    if (next === '' || loading.current) return;
    loading.current = true;
    try {
      const page = await ask(LATER_PAGES, next, '');
      if (current.current !== filter) return;
      setJobs((before) => append(before ?? [], page.jobs));
      setNext(page.next_page_token === '' ? 'none' : page.next_page_token);
    } catch (thrown) {
      if (thrown instanceof ApiError) setError(thrown);
    } finally {
      loading.current = false;
    }
  }, [next, ask, filter]);
  // Jobs that are shown change where they stand.
  const update = useCallback((changed: readonly Job[]) => {
    setJobs((before) => before && replace(before, changed));
  }, []);
  return {
    jobs, error: newest.error ?? error, retry: newest.refresh, update,
    more: next === '' || next === 'none' ? undefined : more,
  };
}

const STATES: readonly { value: JobState | ''; label: string }[] = [
  { value: '', label: 'All' },
  { value: 'QUEUED', label: 'Queued' },
  { value: 'RUNNING', label: 'Running' },
  { value: 'SUCCEEDED', label: 'Succeeded' },
  { value: 'FAILED', label: 'Failed' },
  { value: 'CANCELLED', label: 'Cancelled' },
];

const TONES: Record<string, string> = { YES: 'good', NO: 'bad', UNCLEAR: 'unsure' };

function VerdictText({ job }: { job: Job }) {
  const verdict = mainVerdict(useVerdicts(job));
  if (!verdict) return null;
  const where = `${verdict.variant}${verdict.device ? ` on ${verdict.device}` : ''}: ${verdict.text}`;
  return <span class={`small since ${TONES[verdict.answer] ?? ''}`} title={where}>{verdict.text}</span>;
}

function StateCell({ job, why }: { job: Job; why: string }) {
  const running = job.tasks.find((task) => task.state === 'LEASED');
  const detail = why || (hasEnded(job) ? job.failure?.message ?? '' : running?.progress_message ?? '');
  return (
    <div class="lines">
      <span><StatePill state={job.state} />{job.from_cache && <span class="tag">cached</span>}</span>
      {job.state === 'RUNNING' && !detail
        ? <Bar value={progressOf(job)} label="Progress" />
        : hasEnded(job) && !detail ? <VerdictText job={job} />
        : <span class="small muted" title={detail}>{detail}</span>}
    </div>
  );
}

function Took({ job }: { job: Job }) {
  const now = useNow(hasEnded(job) ? 3_600_000 : 1000);
  const start = when(job.start_time);
  if (Number.isNaN(start)) return <>–</>;
  const end = hasEnded(job) ? when(job.end_time) : now;
  return <>{span(Math.max(0, end - start) / 1000)}</>;
}

function columnsFor(why: (job: Job) => string): Column<Job>[] {
  return [
    {
      title: 'Job', show: (job) => (
        <div class="lines">
          <span><a class="cell-main" href={to('jobs', job.job_id)}>{job.spec?.name || modelOf(job)}</a></span>
          <span class="small muted">{job.spec?.name ? modelOf(job) : <span class="mono">{job.job_id}</span>}</span>
        </div>
      ),
    },
    { title: 'State', width: '26%', show: (job) => <StateCell job={job} why={why(job)} /> },
    { title: 'Recipe', width: '110px', wide: true, show: recipeOf },
    {
      title: 'Devices', width: '16%', wide: true, show: (job) => (
        <div class="lines">
          <span>{(job.spec?.benchmark?.devices ?? []).join(', ') || <span class="muted">not measured</span>}</span>
          <span><Tags tags={job.spec?.tags ?? []} /></span>
        </div>
      ),
    },
    { title: 'Project', width: '92px', wide: true, show: (job) => job.project },
    {
      title: 'Submitted', width: '124px', number: true, show: (job) => (
        <div class="lines">
          <span><Ago time={job.create_time} /></span>
          <span class="small muted" title={clock(job.start_time)}><Took job={job} /></span>
        </div>
      ),
    },
  ];
}

export function JobsPage({ route }: { route: Route }) {
  const farm = useFarm();
  const { parameters } = route;
  const filter = filterOf(parameters);
  const [fed, setFed] = useState(false);
  const { jobs, error, retry, update, more } = useJobs(filter, fed ? FED_PERIOD : PERIOD);
  const devices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices', signal), 5000, []);
  const live = usePoll(async (signal) => {
    const of = async (state: string) =>
      (await get<Page>(`/v1/jobs${query({ filter: `state=${state}`, page_size: 1000 })}`, signal)).jobs.length;
    return { QUEUED: await of('QUEUED'), RUNNING: await of('RUNNING') } as Record<string, number>;
  }, fed ? FED_PERIOD : 5000, []);
  // Without a filter the same address as that of the list.
  const newest = usePoll((signal) => get<Page>(`/v1/jobs${query({ page_size: FIRST_PAGE })}`, signal), fed ? FED_PERIOD : 5000, []);
  const isFed = useJobFeed((changed) => {
    const before = new Map((jobs ?? []).map((job) => [job.job_id, job.state]));
    update(changed);
    // Whether a job is new, or fits the filter still, the list tells.
    if (changed.length > 0 && changed.every((job) => before.get(job.job_id) === job.state)) return;
    retry();
    live.refresh();
    newest.refresh();
  });
  useEffect(() => setFed(isFed), [isFed]);
  const [project, setProject] = useState('');
  const [tag, setTag] = useState('');
  const shown = useMemo(() => (jobs ?? []).filter((job) =>
    (project === '' || job.project === project) && (tag === '' || (job.spec?.tags ?? []).includes(tag))),
  [jobs, project, tag]);
  const { projects, tags, recipes } = useMemo(() => ({
    projects: [...new Set((jobs ?? []).map((job) => job.project))].sort(),
    tags: [...new Set((jobs ?? []).flatMap((job) => job.spec?.tags ?? []))].sort(),
    recipes: [...new Set((jobs ?? []).map(recipeOf))].sort(),
  }), [jobs]);
  const columns = columnsFor((job) => whyJobWaits(job, devices.data?.devices ?? [], farm, Date.now()));
  const set = (key: string) => (value: string) => setParameters(route, { [key]: value });
  const filtered = filter !== '' || project !== '' || tag !== '';
  const clear = () => {
    setProject('');
    setTag('');
    setParameters(route, { state: '', recipe: '', model: '', device: '', name: '' });
  };
  return (
    <>
      <Head title="Jobs" actions={may(farm, 'SUBMIT') && <a class="button primary" href={to('submit')}>New job</a>} />
      {newest.data && newest.data.jobs.length > 0 && (
        <Overview jobs={newest.data.jobs} devices={devices.data?.devices ?? []} workers={farm?.workers ?? 0}
          running={live.data?.['RUNNING'] ?? 0} queued={live.data?.['QUEUED'] ?? 0} />
      )}
      <div class="filters">
        <Switch label="State" value={(parameters.get('state') ?? '') as JobState | ''} onChange={set('state')}
          options={STATES.map((state) => ({ ...state, count: live.data?.[state.value] || undefined }))} />
      </div>
      <div class="filters">
        <Search main label="Model" placeholder="file name or SHA-256" value={parameters.get('model') ?? ''} onChange={set('model')} />
        <Search label="Recipe" value={parameters.get('recipe') ?? ''} onChange={set('recipe')}
          options={recipes} />
        <Search label="Device" value={parameters.get('device') ?? ''} onChange={set('device')}
          options={(devices.data?.devices ?? []).map((device) => device.info?.name ?? '')} />
        <Search label="Name" value={parameters.get('name') ?? ''} onChange={set('name')} />
        <Search label="Tag" value={tag} onChange={setTag} options={tags} />
        {projects.length > 1 && <Search label="Project" value={project} onChange={setProject} options={projects} />}
      </div>
      {error && !error.unreachable && <ErrorNote error={error} retry={retry} />}
      {jobs && shown.length > 0 && (
        <Card flush>
          <Table label="Jobs" className="jobs" rows={shown} columns={columns} id={(job) => job.job_id} rowHeight={57}
            onEnd={more} rowClass={() => 'link'} />
        </Card>
      )}
      {jobs && shown.length === 0 && (filtered
        ? <Empty icon="jobs" title="No job fits these filters"><button onClick={clear}>Clear the filters</button></Empty>
        : <Empty icon="jobs" title="No jobs yet">
            <p>Submit a model here, or with <code>optctl submit model.pb --recipe=int8 --wait</code>.</p>
            {may(farm, 'SUBMIT') && <a class="button primary" href={to('submit')}>Submit a model</a>}
          </Empty>)}
      {jobs && <p class="small muted" role="status">{plural(shown.length, 'job')}{more ? ' so far; scroll for more' : ''}</p>}
    </>
  );
}
