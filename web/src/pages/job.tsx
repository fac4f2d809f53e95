// One job: its verdict, what runs, what came out of it, and how to repeat it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { get, post } from '../lib/api';
import { useEvents, type LogPart } from '../lib/events';
import { may, useFarm } from '../lib/farm';
import { clock, plural, points, share, span, times, when } from '../lib/format';
import { commandsOf, modelOf, recipeOf, sentenceOf, stateText, titleOf, whyTaskWaits } from '../lib/job';
import { useNow, usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import { hasEnded, type Device, type Job, type Task } from '../lib/types';
import { FilesCard, FromCard, WarningsCard } from '../parts/job_facts';
import { GraphPart } from '../parts/job_graph';
import { saveReport } from '../parts/job_report';
import { LayersPart, picturesIn } from '../parts/job_layers';
import { GatesCard, ResultsCard } from '../parts/job_results';
import { Icon } from '../parts/icons';
import { Ago, Bar, Card, CopyButton, Dialog, Empty, ErrorNote, Head, Loaded, StatePill, Switch, Tags, useAction } from '../parts/ui';

function Verdict({ job }: { job: Job }) {
  const sentence = sentenceOf(job);
  const best = job.verdicts
    .filter((verdict) => verdict.answer !== 'BASELINE')
    .sort((a, b) => (b.speedup || 0) - (a.speedup || 0))[0];
  return (
    <section class={`verdict ${sentence.tone}`} aria-label="Verdict">
      <Icon name={sentence.tone} />
      <div>
        <h2>{sentence.headline}</h2>
        {sentence.reason && <p>{sentence.reason}</p>}
      </div>
      {best && (
        <div class="facts">
          {best.speedup > 0 && <span class="fact"><b>{times(best.speedup)}</b><span>{job.verdicts.length > 2 ? 'faster, at best' : 'faster'}</span></span>}
          {best.size_ratio > 0 && <span class="fact"><b>{times(best.size_ratio)}</b><span>the size</span></span>}
          {best.top1_change !== undefined
            ? <span class="fact"><b>{points(best.top1_change)}</b><span>points of top-1</span></span>
            : best.agreement !== undefined && <span class="fact"><b>{share(best.agreement)}</b><span>same answers</span></span>}
        </div>
      )}
    </section>
  );
}

function Facts({ job }: { job: Job }) {
  const now = useNow(hasEnded(job) ? 3_600_000 : 1000);
  const start = when(job.start_time);
  const end = hasEnded(job) ? when(job.end_time) : now;
  return (
    <dl class="facts-row">
      <div><dt>Job</dt><dd class="mono">{job.job_id}</dd></div>
      <div><dt>Submitted</dt><dd title={clock(job.create_time)}><Ago time={job.create_time} /></dd></div>
      {!Number.isNaN(start) && <div><dt>{hasEnded(job) ? 'Took' : 'Runs for'}</dt><dd>{span(Math.max(0, end - start) / 1000)}</dd></div>}
      <div><dt>Recipe</dt><dd>{recipeOf(job)}</dd></div>
      <div><dt>Project</dt><dd>{job.project}</dd></div>
      {job.from_cache && (
        <div><dt>From the cache:</dt><dd><a href={to('jobs', job.cached_from_job_id)}>{job.cached_from_job_id}</a></dd></div>
      )}
      {(job.spec?.tags.length ?? 0) > 0 && <div><dt>Tags</dt><dd><Tags tags={job.spec!.tags} /></dd></div>}
    </dl>
  );
}

function TaskRow({ task, why }: { task: Task; why: string }) {
  const now = useNow(task.state === 'LEASED' ? 1000 : 3_600_000);
  const start = when(task.start_time);
  const end = task.end_time ? when(task.end_time) : now;
  const done = ['TASK_DONE', 'TASK_FAILED', 'TASK_CANCELLED'].includes(task.state);
  const text = why || task.failure?.message || (done ? '' : task.progress_message);
  return (
    <li class="task">
      <div>
        <span class="cell-main">{task.kind === 'OPTIMIZE' ? 'Optimize' : `Benchmark ${task.device}`}</span>
        <div class="small muted">
          {task.holder && `on ${task.holder}`}
          {task.failed_attempts > 0 && `, ${plural(task.failed_attempts, 'failed attempt')} of ${task.max_attempts}`}
        </div>
      </div>
      <StatePill state={task.state} />
      <div class="bar-cell">
        {!text && task.state === 'TASK_DONE' ? null : (
          <>
            {task.state === 'LEASED' && <Bar value={task.progress} label={`Progress of ${task.kind.toLowerCase()} ${task.device}`} />}
            <span class="small muted break">{text}{task.state === 'LEASED' ? ` ${Math.round(task.progress * 100)} %` : ''}</span>
          </>
        )}
      </div>
      <span class="small muted end nowrap">{Number.isNaN(start) ? '' : span(Math.max(0, end - start) / 1000)}</span>
    </li>
  );
}

function TasksCard({ job, devices }: { job: Job; devices: Device[] }) {
  const farm = useFarm();
  const done = job.tasks.filter((task) => task.state === 'TASK_DONE').length;
  return (
    <Card title="Tasks" note={`${done} of ${job.tasks.length} done`}>
      <ul style={{ listStyle: 'none', margin: 0, padding: 0 }} aria-live="off">
        {job.tasks.map((task) => (
          <TaskRow key={task.task_id} task={task} why={hasEnded(job) ? '' : whyTaskWaits(task, devices, farm, Date.now())} />
        ))}
      </ul>
    </Card>
  );
}

/** The log of one task or of all, which follows its end until one scrolls up. */
function Log({ job, log, live, cut }: { job: Job; log: LogPart[]; live: boolean; cut: boolean }) {
  const [task, setTask] = useState('');
  const element = useRef<HTMLPreElement>(null);
  const follow = useRef(true);
  const text = log.filter((part) => task === '' || part.task === task).map((part) => part.text).join('');
  useEffect(() => {
    const box = element.current;
    if (box && follow.current) box.scrollTop = box.scrollHeight;
  }, [text]);
  const names = job.tasks.map((one) => ({ value: one.task_id, label: one.kind === 'OPTIMIZE' ? 'Optimize' : one.device }));
  return (
    <Card title="Log" note={live ? 'live' : cut ? 'the beginning is left out; task.log has all' : undefined}>
      {names.length > 1 && (
        <p style={{ marginBottom: '10px' }}>
          <Switch label="Task" value={task} onChange={setTask} options={[{ value: '', label: 'All' }, ...names]} />
        </p>
      )}
      {text === '' ? <p class="muted">{live ? 'Nothing yet.' : 'The log is empty, or is no longer kept.'}</p> : (
        <pre class="log" ref={element} tabIndex={0} role="log" aria-label="Log" aria-live="off"
          onScroll={(event) => {
            const box = event.currentTarget;
            follow.current = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
          }}>{text}</pre>
      )}
    </Card>
  );
}

function RepeatCard({ job }: { job: Job }) {
  return (
    <Card title="Do it again" note="The same work from a terminal">
      {commandsOf(job).map(({ title, command }) => (
        <div key={title}>
          <h3>{title}</h3>
          <div class="command"><pre tabIndex={0}>{command}</pre><CopyButton text={command} /></div>
        </div>
      ))}
    </Card>
  );
}

function CancelDialog({ job, close, done }: { job: Job; close: () => void; done: () => void }) {
  const [reason, setReason] = useState('');
  const { run, busy, error } = useAction();
  const cancel = async (event: Event) => {
    event.preventDefault();
    if (await run(() => post(`/v1/jobs/${encodeURIComponent(job.job_id)}:cancel`, { reason }))) {
      close();
      done();
    }
  };
  return (
    <Dialog title="Cancel this job?" onClose={close}>
      <form onSubmit={cancel}>
        <p class="muted">Its tasks stop at their next call. What has been measured stays.</p>
        <label class="field">Reason, for others (optional)
          <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        {error && <ErrorNote error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>Keep it</button>
          <button type="submit" class="danger" disabled={busy}>Cancel the job</button>
        </div>
      </form>
    </Dialog>
  );
}

function save(job: Job): Promise<void> {
  const title = `${titleOf(job)}: ${sentenceOf(job).headline}`;
  return saveReport(title, `report_${job.job_id}.html`, picturesIn(job), (
    <>
      <Head title={titleOf(job)} actions={<StatePill state={job.state} />} />
      <Verdict job={job} />
      <Card><Facts job={job} /></Card>
      <ResultsTab job={job} />
      {job.report && <LayersPart job={job} report={job.report} />}
      <RepeatCard job={job} />
      <FilesCard job={job} />
    </>
  ));
}

type Tab = 'results' | 'layers' | 'graph' | 'log' | 'files';

function JobView({ job, route, refresh, devices }: { job: Job; route: Route; refresh: () => void; devices: Device[] }) {
  const farm = useFarm();
  const [cancelling, setCancelling] = useState(false);
  const events = useEvents(job.job_id, refresh);
  const ended = hasEnded(job);
  const asked = route.parameters.get('tab') as Tab | null;
  const tab: Tab = asked ?? (ended || job.report ? 'results' : 'log');
  const optimized = job.artifacts.find((artifact) => artifact.name === 'optimized.pb');
  const hasLayers = job.report !== undefined;
  useEffect(() => {
    document.title = `${stateText(job.state)}: ${titleOf(job)} · Optfarm`;
  }, [job.state, job.job_id]);
  return (
    <>
      <Head title={<>{job.spec?.name || modelOf(job)} <span class="muted">· {recipeOf(job)}</span></>}
        actions={<>
          <StatePill state={job.state} />
          {ended && <a class="button" href={to('compare', '', { a: job.job_id })}>Compare</a>}
          <a class="button" href={to('models', '', { model: modelOf(job) })}>Model</a>
          {job.report && <button onClick={() => void save(job)} title="The whole job as one HTML file">Report</button>}
          {optimized && <a class="button primary" download={`optimized_${modelOf(job)}`} href={`/v1/blobs/${optimized.digest?.sha256}`}>Download</a>}
          {!ended && may(farm, 'SUBMIT') && <button class="danger" onClick={() => setCancelling(true)}>Cancel</button>}
        </>} />
      <Verdict job={job} />
      <Card><Facts job={job} /></Card>
      {(!ended || job.tasks.some((task) => task.failure)) && <TasksCard job={job} devices={devices} />}
      <div class="filters">
        <Switch label="Part of the job" value={tab} onChange={(value) => setParameters(route, { tab: value })} options={[
          { value: 'results', label: 'Results' },
          ...(hasLayers ? [{ value: 'layers' as const, label: 'Layers' }] : []),
          ...(optimized ? [{ value: 'graph' as const, label: 'Graph' }] : []),
          { value: 'log', label: 'Log' },
          { value: 'files', label: 'Files and repeat', count: job.artifacts.length || undefined },
        ]} />
      </div>
      {tab === 'results' && <ResultsTab job={job} />}
      {tab === 'layers' && job.report && <LayersPart job={job} report={job.report} />}
      {tab === 'graph' && <GraphPart job={job} optimized={optimized?.digest?.sha256 ?? ''} route={route} />}
      {tab === 'log' && <Log job={job} log={events.log} live={events.live && !ended} cut={events.cut} />}
      {tab === 'files' && (
        <>
          <RepeatCard job={job} />
          <FilesCard job={job} />
          {ended && <TasksCard job={job} devices={devices} />}
        </>
      )}
      {cancelling && <CancelDialog job={job} close={() => setCancelling(false)} done={refresh} />}
    </>
  );
}

function ResultsTab({ job }: { job: Job }) {
  if (!job.report && job.measurements.length === 0) {
    return hasEnded(job)
      ? <Empty icon="bad" title="There are no results">The job ended before anything was made. Its log says more.</Empty>
      : <Empty icon="busy" title="No results yet">They come when the model is optimized, device by device.</Empty>;
  }
  return (
    <>
      <ResultsCard job={job} />
      <div class="grid two">
        {job.gates.length > 0 && <GatesCard job={job} />}
        {job.report && <WarningsCard report={job.report} job={job} />}
      </div>
      {job.report && <FromCard job={job} report={job.report} />}
    </>
  );
}

export function JobPage({ route }: { route: Route }) {
  const job = usePoll((signal) => get<Job>(`/v1/jobs/${encodeURIComponent(route.id)}`, signal), 15_000, [route.id]);
  const devices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices', signal), 5000, []);
  return (
    <Loaded data={job.data} error={job.error} retry={job.refresh} title="Job">
      {(data) => <JobView job={data} route={route} refresh={job.refresh} devices={devices.data?.devices ?? []} />}
    </Loaded>
  );
}
