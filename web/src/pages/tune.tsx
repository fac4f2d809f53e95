// One tune: what it recommends for each device, the picture of all variants, and
// how it was found. Live while the search goes on.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, post, query } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, clock, micros, num, plural, share, span, times, when } from '../lib/format';
import { progressOf, stateText, whyJobWaits } from '../lib/job';
import { useNow, usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import {
  boundOf, budgetSeconds, budgetShare, commandsOfTune, goalOf, isRunning, measureOf, measureOfReport, MEASURE_WORDS, modelOfTune, newsOf,
  provisionalOf, qualityText, recommendedOf, shownQuality, speedupText, tuneSentence, variantOfJob, type Provisional,
} from '../lib/tune';
import { hasEnded, type Device, type Job, type Tune, type TunedDevice, type TunedVariant, type TuneMeasure } from '../lib/types';
import { Icon } from '../parts/icons';
import { Table } from '../parts/table';
import { TuneKeys, TunePlot, type TuneAxis } from '../parts/tune_plot';
import { Ago, Bar, Card, CopyButton, Dialog, ErrorNote, Head, Loaded, Pill, StatePill, Switch, useAction } from '../parts/ui';

const PERIOD = 1500;
// Jobs of one round whose numbers are shown before the search has learned from
// them.
const MOST_NEWS = 16;

function Answer({ tune }: { tune: Tune }) {
  const sentence = tuneSentence(tune);
  const measure = measureOf(tune);
  const shipped = (tune.report?.devices ?? []).map(recommendedOf).filter((variant) => variant !== undefined);
  const best = [...shipped].sort((a, b) => b.speedup - a.speedup)[0];
  const many = shipped.length > 1 ? ', at best' : '';
  return (
    <section class={`verdict ${sentence.tone}`} aria-label="Answer">
      <Icon name={sentence.tone} />
      <div aria-live="polite">
        <h2>{sentence.headline}</h2>
        {sentence.reason && <p>{sentence.reason}</p>}
        {tune.report?.one_for_all && (
          <p>One for all: <b>{tune.report.one_for_all}</b>, at most {times(tune.report.worst_regret)} of the best on any device</p>
        )}
      </div>
      {best && (
        <div class="facts">
          <span class="fact"><b>{times(best.speedup)}</b><span>the speed{many}</span></span>
          <span class="fact"><b>{times(Math.min(...shipped.map((variant) => variant.size_ratio)))}</b><span>the size{many}</span></span>
          <span class="fact"><b>{qualityText(Math.min(...shipped.map(shownQuality)), measure)}</b>
            <span>{MEASURE_WORDS[measure]}{shipped.length > 1 ? ', at worst' : ''}</span></span>
        </div>
      )}
    </section>
  );
}

function TuneFacts({ tune }: { tune: Tune }) {
  const now = useNow(isRunning(tune) ? 1000 : 3_600_000);
  const end = isRunning(tune) ? now : when(tune.end_time);
  const budget = budgetSeconds(tune);
  const report = tune.report;
  return (
    <Card>
      <dl class="facts-row">
        <div><dt>Goal</dt><dd>{goalOf(tune)}</dd></div>
        <div><dt>Tune</dt><dd class="mono">{tune.tune_id}</dd></div>
        <div><dt>Begun</dt><dd title={clock(tune.create_time)}><Ago time={tune.create_time} /></dd></div>
        <div><dt>{isRunning(tune) ? 'Runs for' : 'Took'}</dt><dd>{span(Math.max(0, end - when(tune.create_time)) / 1000)}</dd></div>
        <div><dt>Threads</dt><dd>{(tune.spec?.thread_counts ?? []).join(', ') || tune.spec?.threads || 1}</dd></div>
        <div><dt>By</dt><dd>{tune.owner}{tune.project && `, ${tune.project}`}</dd></div>
      </dl>
      {!Number.isNaN(budget) && (
        <div class="budget">
          <span class="small muted">Budget: {span(Math.min(budget, Math.max(0, budgetShare(tune, now)) * budget))} of {span(budget)}</span>
          <Bar value={budgetShare(tune, now)} label="Budget used" tone={isRunning(tune) ? 'busy' : 'calm'} />
        </div>
      )}
      {report && report.measured > 0 && (
        <ol class="funnel" aria-label="How variants were sifted">
          <li><b>{report.considered}</b><span>considered</span></li>
          <li><b>{report.judged}</b><span>judged without a device</span></li>
          <li><b>{report.measured}</b><span>measured on devices</span></li>
          <li><b>{span(report.device_seconds)}</b><span>of devices’ time</span></li>
          {report.latency_error !== undefined && <li><b>{share(report.latency_error)}</b><span>median error of predicted latency</span></li>}
        </ol>
      )}
    </Card>
  );
}

/** Latencies of what one would ship without a tune, and of what it recommends. */
function Bars({ device }: { device: TunedDevice }) {
  const best = recommendedOf(device);
  const usual = device.variants.find((variant) => variant.name === 'int8');
  const rows = [
    { name: 'original', us: device.float_us, color: 'float' },
    ...(usual && usual !== best ? [{ name: 'int8', us: usual.latency_us, color: 'usual' }] : []),
    ...(best ? [{ name: best.name, us: best.latency_us, color: 'ship' }] : []),
  ].filter((row) => row.us > 0);
  const most = Math.max(...rows.map((row) => row.us));
  if (rows.length === 0) return null;
  return (
    <ul class="latencies">
      {rows.map((row) => (
        <li key={row.name}>
          <span class="break">{row.name}</span>
          <span class="track"><span class={row.color} style={{ width: `${(100 * row.us) / most}%` }} /></span>
          <b>{micros(row.us)}</b>
        </li>
      ))}
    </ul>
  );
}

function DownloadButton({ jobId, name }: { jobId: string; name: string }) {
  const { run, busy, error } = useAction();
  const download = () => run(async () => {
    const job = await get<Job>(`/v1/jobs/${encodeURIComponent(jobId)}`);
    const artifact = job.artifacts.find((one) => one.name === 'optimized.pb');
    if (!artifact?.digest) throw new Error(`the job ${jobId} has no model any more`);
    const link = document.createElement('a');
    link.href = `/v1/blobs/${artifact.digest.sha256}`;
    link.download = `${name}.pb`;
    link.click();
  });
  return (
    <>
      <button onClick={download} disabled={busy} title={`Download ${name}.pb`}>Download</button>
      {error && <ErrorNote error={error} />}
    </>
  );
}

function DeviceCard({ device, news, axis, tune, measure }: {
  device: TunedDevice;
  news: readonly Provisional[];
  axis: TuneAxis;
  tune: Tune;
  measure: TuneMeasure;
}) {
  const best = recommendedOf(device);
  return (
    <Card title={device.device} note={best
      ? <span class="ship-note"><Pill tone="good">ship {best.name}</Pill><DownloadButton jobId={best.job_id} name={best.name} /></span>
      : device.variants.length > 0 ? <Pill tone={isRunning(tune) ? 'calm' : 'bad'}>nothing keeps the bound</Pill> : undefined}>
      <Bars device={device} />
      <TunePlot device={device} news={news} axis={axis} measure={measure} bound={boundOf(tune, measure)} />
    </Card>
  );
}

function Standing({ variant, device }: { variant: TunedVariant; device: TunedDevice }) {
  if (variant.name === device.recommended) return <Pill tone="good">ship</Pill>;
  if (!variant.meets_bound) return <Pill tone="bad">misses the bound</Pill>;
  return variant.dominated ? <span class="muted">another is better</span> : <Pill tone="busy">worth having</Pill>;
}

function Candidates({ tune, route, measure }: { tune: Tune; route: Route; measure: TuneMeasure }) {
  const devices = tune.report?.devices ?? [];
  const asked = route.parameters.get('device');
  const device = devices.find((one) => one.device === asked) ?? devices[0];
  if (!device || device.variants.length === 0) return null;
  const quality = (value: number | undefined) => (value === undefined ? '–' : qualityText(value, measure));
  return (
    <Card title="Candidates" note={`${plural(device.variants.length, 'variant')} measured on ${device.device}`} flush>
      {devices.length > 1 && (
        <p class="card-switch">
          <Switch label="Device" value={device.device} onChange={(value) => setParameters(route, { device: value })}
            options={devices.map((one) => ({ value: one.device, label: one.device }))} />
        </p>
      )}
      <Table label="Candidates" rows={device.variants} id={(variant) => variant.name}
        rowClass={(variant) => (variant.name === device.recommended ? 'chosen' : '')} columns={[
          { title: 'Variant', key: (variant) => variant.name, show: (variant) => (
            <div class="lines cell-name"><span><a class="cell-main break" href={to('jobs', variant.job_id)}>{variant.name}</a></span>
              <span class="small muted cell-long">{variant.description}</span></div>
          ) },
          { title: 'Standing', show: (variant) => <Standing variant={variant} device={device} /> },
          { title: 'Latency', number: true, key: (variant) => variant.latency_us, show: (variant) => (
            <div class="lines"><span>{micros(variant.latency_us)}</span>
              {variant.predicted_us !== undefined && <span class="small muted">predicted {micros(variant.predicted_us)}</span>}</div>
          ) },
          { title: 'Speed', number: true, key: (variant) => variant.speedup, show: speedupText },
          { title: 'Size', number: true, key: (variant) => num(variant.file_bytes), show: (variant) => (
            <div class="lines"><span>{times(variant.size_ratio)}</span><span class="small muted">{bytes(num(variant.file_bytes))}</span></div>
          ) },
          { title: 'While searching', number: true, wide: true, key: (variant) => variant.quality, show: (variant) => quality(variant.quality) },
          { title: 'Held out', number: true, key: (variant) => variant.held_out_quality ?? -Infinity, show: (variant) => (
            <div class="lines"><span>{quality(variant.held_out_quality)}</span>
              {variant.held_out_low !== undefined && (
                <span class="small muted">{quality(variant.held_out_low)} to {quality(variant.held_out_high)}</span>
              )}</div>
          ) },
        ]} />
    </Card>
  );
}

function NowCard({ tune, jobs, devices }: { tune: Tune; jobs: readonly Job[]; devices: Device[] }) {
  const farm = useFarm();
  const live = jobs.filter((job) => !hasEnded(job));
  return (
    <Card title="Now" note={tune.progress || undefined}>
      {live.length === 0 ? <p class="muted">Between two steps.</p> : (
        <ul class="now">
          {live.slice(0, 12).map((job) => {
            const running = job.tasks.find((task) => task.state === 'LEASED');
            const why = whyJobWaits(job, devices, farm, Date.now());
            return (
              <li key={job.job_id}>
                <a class="cell-main break" href={to('jobs', job.job_id)}>{variantOfJob(job)}</a>
                <StatePill state={job.state} />
                <span class="bar-cell">{job.state === 'RUNNING' && <Bar value={progressOf(job)} label={`Progress of ${variantOfJob(job)}`} />}
                  <span class="small muted break">{why || (running?.device ? `measured on ${running.device}` : running?.progress_message ?? '')}</span></span>
              </li>
            );
          })}
        </ul>
      )}
    </Card>
  );
}

function Story({ tune }: { tune: Tune }) {
  const { steps = [], warnings = [] } = tune.report ?? {};
  return (
    <div class="grid two">
      {warnings.length > 0 && (
        <Card title="Before you ship"><ul class="warnings">{warnings.map((warning) => <li key={warning}>{warning}</li>)}</ul></Card>
      )}
      {steps.length > 0 && (
        <Card title="How it was found"><ol class="warnings">{steps.map((step) => <li key={step}>{step}</li>)}</ol></Card>
      )}
      <Card title="Do it again">
        {commandsOfTune(tune).map(({ title, command }) => (
          <div key={title}>
            <h3>{title}</h3>
            <div class="command"><pre tabIndex={0}>{command}</pre><CopyButton text={command} /></div>
          </div>
        ))}
      </Card>
    </div>
  );
}

function CancelDialog({ tune, close, done }: { tune: Tune; close: () => void; done: () => void }) {
  const [reason, setReason] = useState('');
  const { run, busy, error } = useAction();
  const cancel = async (event: Event) => {
    event.preventDefault();
    if (await run(() => post(`/v1/tunes/${encodeURIComponent(tune.tune_id)}:cancel`, { reason }))) {
      close();
      done();
    }
  };
  return (
    <Dialog title="Cancel this tune?" onClose={close}>
      <form onSubmit={cancel}>
        <p class="muted">Its jobs are cancelled, unless another tune waits for them. What it has found stays.</p>
        <label class="field">Reason, for others (optional)
          <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        {error && <ErrorNote error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>Keep it</button>
          <button type="submit" class="danger" disabled={busy}>Cancel the tune</button>
        </div>
      </form>
    </Dialog>
  );
}

/** The tune's jobs, and the whole of those that tell something new; while it runs. */
function useNews(tune: Tune): { jobs: Job[]; news: Job[] } {
  const running = isRunning(tune);
  const list = usePoll(async (signal) => (running && tune.job_name !== ''
    ? get<{ jobs: Job[] }>(`/v1/jobs${query({ filter: `name=${tune.job_name}`, page_size: 100 })}`, signal) : { jobs: [] }),
  running ? PERIOD : 0, [tune.job_name, running]);
  const jobs = list.data?.jobs ?? [];
  const ids = running ? newsOf(tune, jobs).slice(0, MOST_NEWS) : [];
  // What has ended does not change.
  const whole = usePoll((signal) => Promise.all(ids.map((id) => get<Job>(`/v1/jobs/${encodeURIComponent(id)}`, signal))), 0, [ids.join(' ')]);
  return { jobs, news: ids.length > 0 ? whole.data ?? [] : [] };
}

/** Devices in the order they were asked for, also before anything is known of them. */
function devicesOf(tune: Tune, news: readonly Job[]): TunedDevice[] {
  const known = new Map((tune.report?.devices ?? []).map((device) => [device.device, device]));
  const originalOn = (name: string) =>
    news.flatMap((job) => job.measurements).find((one) => one.device === name && one.variant === 'float')?.median_us ?? 0;
  return (tune.spec?.devices ?? []).map((name) => {
    const device = known.get(name) ?? {
      device: name, variants: [], recommended: '', recommended_threads: 0, float_us: 0, known_steps: 0, estimated_steps: 0,
      front_steps: [], latency_error: NaN, latency_rank_correlation: NaN,
    };
    return device.float_us > 0 ? device : { ...device, float_us: originalOn(name) };
  });
}

function TuneView({ tune, route, refresh }: { tune: Tune; route: Route; refresh: () => void }) {
  const farm = useFarm();
  const [cancelling, setCancelling] = useState(false);
  const { jobs, news } = useNews(tune);
  const running = isRunning(tune);
  const farmDevices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices', signal), running ? 5000 : 0, [running]);
  const first = news.find((job) => job.report);
  const measure = measureOf(tune) === 'MEASURE_UNSPECIFIED' && first?.report ? measureOfReport(first.report) : measureOf(tune);
  const devices = devicesOf(tune, news);
  const fresh = useMemo(() => new Map(devices.map(({ device }) =>
    [device, news.map((job) => provisionalOf(job, device, measure)).filter((one) => one !== undefined)])), [news, measure, devices.length]);
  const axis: TuneAxis = route.parameters.get('axis') === 'size' ? 'size' : 'quality';
  useEffect(() => {
    document.title = `${stateText(tune.state)}: tune of ${modelOfTune(tune)} · Optfarm`;
  }, [tune.state, tune.tune_id]);
  return (
    <>
      <Head title={<>{modelOfTune(tune)} <span class="muted">· tune</span></>}
        actions={<>
          <StatePill state={tune.state} />
          <a class="button" href={to('models', '', { model: modelOfTune(tune) })}>Model</a>
          <a class="button" href={to('jobs', '', { name: tune.job_name })}>Its jobs</a>
          {running && may(farm, 'SUBMIT') && <button class="danger" onClick={() => setCancelling(true)}>Cancel</button>}
        </>} />
      <Answer tune={tune} />
      <TuneFacts tune={tune} />
      {running && <NowCard tune={tune} jobs={jobs} devices={farmDevices.data?.devices ?? []} />}
      <div class="filters spread">
        <Switch label="Second axis" value={axis} onChange={(value) => setParameters(route, { axis: value === 'size' ? 'size' : '' })}
          options={[{ value: 'quality', label: 'Quality' }, { value: 'size', label: 'File size' }]} />
        <TuneKeys live={news.length > 0} />
      </div>
      <div class={`grid tuned ${devices.length > 1 ? 'two' : ''}`}>
        {devices.map((device) => (
          <DeviceCard key={device.device} device={device} news={fresh.get(device.device) ?? []} axis={axis} tune={tune} measure={measure} />
        ))}
      </div>
      <Candidates tune={tune} route={route} measure={measure} />
      <Story tune={tune} />
      {cancelling && <CancelDialog tune={tune} close={() => setCancelling(false)} done={refresh} />}
    </>
  );
}

export function TunePage({ route }: { route: Route }) {
  const [ended, setEnded] = useState(false);
  const tune = usePoll((signal) => get<Tune>(`/v1/tunes/${encodeURIComponent(route.id)}`, signal), ended ? 0 : PERIOD, [route.id]);
  const data = tune.data;
  useEffect(() => setEnded(data !== undefined && !isRunning(data)), [data]);
  return (
    <Loaded data={data} error={tune.error} retry={tune.refresh} title="Tune">
      {(found) => <TuneView tune={found} route={route} refresh={tune.refresh} />}
    </Loaded>
  );
}
