// One job: its verdict, what runs, what came out of it, and how to repeat it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { get, post } from '../lib/api';
import { useEvents, type LogPart } from '../lib/events';
import { may, useFarm } from '../lib/farm';
import { plural, span, when } from '../lib/format';
import { modelOf, recipeOf, stateText, titleOf, whyTaskWaits } from '../lib/job';
import { useNow, usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import { hasEnded, type Device, type Job, type Task } from '../lib/types';
import { FilesCard } from '../parts/job_facts';
import { GraphPart } from '../parts/job_graph';
import { LayersPart } from '../parts/job_layers';
import { Facts, RepeatCard, ResultsPart, Verdict } from '../parts/job_summary';
import { Bar, Card, Dialog, ErrorNote, Head, Loaded, StatePill, Switch, useAction } from '../parts/ui';

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
          {job.report && <a class="button" href={`/report/${encodeURIComponent(job.job_id)}`} download={`report_${job.job_id}.html`} title="The whole job as one HTML file">Report</a>}
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
      {tab === 'results' && <ResultsPart job={job} />}
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

export function JobPage({ route }: { route: Route }) {
  const job = usePoll((signal) => get<Job>(`/v1/jobs/${encodeURIComponent(route.id)}`, signal), 15_000, [route.id]);
  const devices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices', signal), 5000, []);
  return (
    <Loaded data={job.data} error={job.error} retry={job.refresh} title="Job">
      {(data) => <JobView job={data} route={route} refresh={job.refresh} devices={devices.data?.devices ?? []} />}
    </Loaded>
  );
}
