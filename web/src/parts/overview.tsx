// The farm at a glance, above the jobs: what came out last and whether that is
// better than before, what runs, which devices are there, what became worse.

import { useMemo } from 'preact/hooks';
import { get, post, query } from '../lib/api';
import { changeOf, type Change } from '../lib/change';
import { plural, words } from '../lib/format';
import { modelOf, recipeOf, sentenceOf, titleOf } from '../lib/job';
import { usePoll } from '../lib/poll';
import { to } from '../lib/route';
import { hasEnded, type Comparison, type Device, type Job, type Regression } from '../lib/types';
import { Icon } from './icons';
import { Ago } from './ui';

// UNITS: milliseconds.
const SLOW_PERIOD = 60_000;

interface Newest {
  job: Job;
  /** The job before it with the same model's name and the same recipe. */
  before: Job | undefined;
  change: Change | undefined;
}

/** The newest job that came to an end by itself, and the one before it. */
function lastTwo(jobs: readonly Job[]): [string, string] {
  const ended = jobs.filter((job) => hasEnded(job) && job.state !== 'CANCELLED');
  const newest = ended[0];
  if (!newest) return ['', ''];
  const like = ended.slice(1).filter((job) =>
    modelOf(job) === modelOf(newest) && recipeOf(job) === recipeOf(newest) && job.project === newest.project);
  const places = newest.spec?.benchmark?.devices ?? [];
  const there = (job: Job) => (job.spec?.benchmark?.devices ?? []).some((device) => places.includes(device));
  return [newest.job_id, (like.find(there) ?? like[0])?.job_id ?? ''];
}

function useNewest(jobs: readonly Job[]): Newest | undefined {
  const [id, beforeId] = useMemo(() => lastTwo(jobs), [jobs]);
  // Ended jobs do not change: each pair is asked for once.
  const found = usePoll(async (signal): Promise<Newest | undefined> => {
    if (id === '') return undefined;
    const job = get<Job>(`/v1/jobs/${encodeURIComponent(id)}`, signal);
    if (beforeId === '') return { job: await job, before: undefined, change: undefined };
    const [newest, before, comparison] = await Promise.all([
      job, get<Job>(`/v1/jobs/${encodeURIComponent(beforeId)}`, signal),
      get<Comparison>(`/v1/results:compare${query({ 'a.job_id': beforeId, 'b.job_id': id })}`, signal).catch(() => undefined),
    ]);
    return { job: newest, before, change: changeOf(before, newest, comparison) };
  }, 0, [id, beforeId]);
  return found.data;
}

function NewestTile({ newest }: { newest: Newest }) {
  const { job, before, change } = newest;
  const sentence = sentenceOf(job);
  return (
    <section class={`tile newest ${sentence.tone}`} aria-label="Newest result">
      <Icon name={sentence.tone} />
      <div>
        <p class="small">Newest result, <Ago time={job.end_time} />: <a href={to('jobs', job.job_id)}>{titleOf(job)}</a></p>
        <h2>{sentence.headline}</h2>
        <p>{sentence.reason}</p>
        {before && change && (
          <p class="small">
            <b class={`since ${change.tone}`}>{change.headline}</b>{' '}
            <a href={to('compare', '', { a: before.job_id, b: job.job_id })}>the one before</a>{change.reason && `: ${change.reason}`}
          </p>
        )}
      </div>
    </section>
  );
}

function Tile(props: { title: string; value: string; tone?: string | undefined; text: string; href: string }) {
  return (
    <a class="tile" href={props.href}>
      <span class="small muted">{props.title}</span>
      <b class={props.tone ? `since ${props.tone}` : undefined}>{props.value}</b>
      <span class="small muted break">{props.text}</span>
    </a>
  );
}

function WorkTile({ running, queued, workers }: { running: number; queued: number; workers: number }) {
  const text = queued === 0 ? 'nothing waits' : `${queued} ${queued === 1 ? 'waits' : 'wait'}`;
  return (
    <Tile title="Now" value={running === 0 ? 'Nothing runs' : `${plural(running, 'job')} ${running === 1 ? 'runs' : 'run'}`}
      tone={queued > 0 && workers === 0 ? 'bad' : undefined} text={`${text}, ${plural(workers, 'worker')}`}
      href={to('jobs', '', { state: running > 0 ? 'RUNNING' : '' })} />
  );
}

const AWAY: readonly string[] = ['OFFLINE', 'DISABLED', 'QUARANTINED'];

function DevicesTile({ devices }: { devices: readonly Device[] }) {
  const count = (state: string) => devices.filter((device) => device.state === state).length;
  const there = devices.filter((device) => !AWAY.includes(device.state)).length;
  // A device that an operator took away is missed by nobody.
  const missed = devices.filter((device) => AWAY.includes(device.state) && device.state !== 'DISABLED');
  const first = missed[0];
  const parts = [
    count('BUSY') > 0 ? `${count('BUSY')} busy` : '',
    count('COOLING') > 0 ? `${count('COOLING')} cooling` : '',
    first ? `${first.info?.name} is ${words(first.state)}${missed.length > 1 ? `, and ${missed.length - 1} more` : ''}` : '',
  ].filter((part) => part !== '');
  return (
    <Tile title="Devices" value={devices.length === 0 ? 'None yet' : `${there} of ${devices.length} in service`}
      tone={devices.length > 0 && there === 0 ? 'bad' : first ? 'unsure' : undefined}
      text={parts.join('; ') || (devices.length === 0 ? 'start one with optfarm-agent' : 'idle')} href={to('devices')} />
  );
}

function HistoryTile() {
  const found = usePoll((signal) => post<{ regressions: Regression[]; judged: number; too_few_points: number }>(
    '/v1/results:regressions', { filter: {}, rule: { metric: 'MEDIAN_US' } }, signal), SLOW_PERIOD, []);
  if (!found.data) return null;
  const { regressions, judged } = found.data;
  const first = regressions[0];
  return (
    <Tile title="History" tone={first ? 'bad' : undefined}
      value={first ? `${plural(regressions.length, 'series', 'series')} slower` : judged > 0 ? 'Nothing got slower' : 'Not judged yet'}
      text={first ? first.message : judged > 0 ? `${plural(judged, 'series', 'series')} judged` : 'series are judged from five points on'}
      href={to('history', '', first?.series ? { model: first.series.model_name, device: first.series.device } : {})} />
  );
}

/** `jobs`: the newest of all, in order. */
export function Overview(props: { jobs: readonly Job[]; devices: readonly Device[]; workers: number; running: number; queued: number }) {
  const newest = useNewest(props.jobs);
  return (
    <div class="overview">
      {newest && <NewestTile newest={newest} />}
      <div class="tiles">
        <WorkTile running={props.running} queued={props.queued} workers={props.workers} />
        <DevicesTile devices={props.devices} />
        <HistoryTile />
      </div>
    </div>
  );
}
