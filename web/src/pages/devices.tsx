// The machines that can be measured: how each is, what it does, and what an
// operator can do about it.

import { useState } from 'preact/hooks';
import { get, post } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, clock, num, span, when } from '../lib/format';
import { toneOfState } from '../lib/job';
import { usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import type { Device, DeviceStateChange } from '../lib/types';
import { Table } from '../parts/table';
import { Ago, Dialog, Empty, ErrorNote, Head, Loaded, Pill, Search, Switch, Tags, useAction } from '../parts/ui';

type Change = 'DISABLE' | 'ENABLE' | 'RETIRE' | 'RESERVE';

const CHANGES: Record<Change, { title: string; what: string; button: string }> = {
  DISABLE: { title: 'Disable', what: 'It gets no more work. What it does now goes on.', button: 'Disable it' },
  ENABLE: { title: 'Enable', what: 'It gets work again; a quarantine or reservation ends.', button: 'Enable it' },
  RETIRE: { title: 'Retire', what: 'It is no longer missed when it does not report.', button: 'Retire it' },
  RESERVE: { title: 'Reserve', what: 'Only jobs with the tag get it for a while; without a tag, none.', button: 'Reserve it' },
};

function ChangeDialog(props: { device: string; change: Change; close: () => void; done: () => void }) {
  const { device, change, close, done } = props;
  const [reason, setReason] = useState('');
  const [hours, setHours] = useState('8');
  const [tag, setTag] = useState('');
  const { run, busy, error } = useAction();
  const text = CHANGES[change];
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = change === 'RESERVE'
      ? { change, reason, tag, duration: `${Math.round(Number(hours) * 3600)}s` }
      : { change, reason };
    if (await run(() => post(`/v1/devices/${encodeURIComponent(device)}:change`, body))) {
      close();
      done();
    }
  };
  return (
    <Dialog title={`${text.title} ${device}?`} onClose={close}>
      <form onSubmit={submit}>
        <p class="muted">{text.what}</p>
        {change === 'RESERVE' && (
          <div class="row-fields">
            <label class="field">Hours
              <input type="number" min="0.1" max="720" step="0.1" required value={hours} onInput={(event) => setHours(event.currentTarget.value)} />
            </label>
            <label class="field">Tag of the jobs
              <input value={tag} onInput={(event) => setTag(event.currentTarget.value)} />
            </label>
          </div>
        )}
        <label class="field">Reason, for others (optional)
          <input value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        {error && <ErrorNote error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>Leave it</button>
          <button type="submit" class="primary" disabled={busy}>{text.button}</button>
        </div>
      </form>
    </Dialog>
  );
}

function Health({ device }: { device: Device }) {
  const health = device.health as { temperature_mc?: string; battery_percent?: number; charging: boolean; load_average?: number; throttled: boolean } | undefined;
  if (!health) return null;
  return (
    <>
      {health.temperature_mc !== undefined && <><dt>Temperature</dt><dd>{(num(health.temperature_mc) / 1000).toFixed(1)} °C{health.throttled && ', throttled'}</dd></>}
      {health.battery_percent !== undefined && <><dt>Battery</dt><dd>{health.battery_percent} %{health.charging && ', charging'}</dd></>}
      {health.load_average !== undefined && <><dt>Load</dt><dd>{health.load_average.toFixed(2)}</dd></>}
    </>
  );
}

function StatesDialog({ device, close }: { device: string; close: () => void }) {
  const states = usePoll((signal) => get<{ changes: DeviceStateChange[] }>(
    `/v1/devices/${encodeURIComponent(device)}/history?page_size=500`, signal), 5000, [device]);
  const rows = (states.data?.changes ?? []).map((change, index, all) => {
    // Newest first: a state lasts until the one before it in the list began.
    const until = index === 0 ? Date.now() : when(all[index - 1]!.time);
    return { index, change, lasted: Math.max(0, until - when(change.time)) / 1000 };
  });
  return (
    <Dialog title={`States of ${device}`} onClose={close}>
      <Loaded data={states.data} error={states.error} retry={states.refresh}>
        {() => (
          <div class="states">
            <Table label={`States of ${device}`} rows={rows} id={(row) => String(row.index)} columns={[
              { title: 'Since', show: ({ change }) => <span class="nowrap">{clock(change.time)}</span> },
              {
                title: 'State', show: ({ change }) => (
                  <div class="lines">
                    <span><Pill tone={toneOfState(change.state)}>{change.state.toLowerCase()}</Pill></span>
                    {change.reason && <span class="small muted break">{change.reason}</span>}
                  </div>
                ),
              },
              { title: 'For', number: true, show: ({ lasted }) => <span class="nowrap">{span(lasted)}</span> },
            ]} />
          </div>
        )}
      </Loaded>
      <div class="actions"><button onClick={close}>Close</button></div>
    </Dialog>
  );
}

function reasonOf(device: Device): string {
  if (device.alert) return device.alert;
  if (device.state === 'RESERVED' || device.reserved_until) {
    return `Reserved until ${clock(device.reserved_until)}${device.reserved_for_tag ? ` for jobs with the tag ${device.reserved_for_tag}` : ''}`;
  }
  if (device.state === 'QUARANTINED') return `${device.state_reason} Gets work again at ${clock(device.quarantined_until)}.`;
  return device.state_reason;
}

function DeviceCard({ device, ask, states }: { device: Device; ask: ((change: Change) => void) | undefined; states: () => void }) {
  const info = device.info;
  const name = info?.name ?? '';
  const job = device.task_id.split('/')[0] ?? '';
  const reason = reasonOf(device);
  const off = device.state === 'DISABLED' || device.state === 'QUARANTINED' || device.state === 'RESERVED';
  return (
    <article class="card device" aria-label={name}>
      <header>
        <div>
          <h2>{name}</h2>
          <p class="small muted">{info?.model || info?.cpu_model}</p>
        </div>
        <Pill tone={toneOfState(device.state)}>{device.state.toLowerCase()}</Pill>
      </header>
      {reason && <p class={`notice ${device.alert ? 'bad' : 'calm'}`} style={{ margin: 0 }}>{reason}</p>}
      <dl>
        {device.task_id && <><dt>Runs</dt><dd><a href={to('jobs', job)}>{job}</a></dd></>}
        {info?.model && <><dt>Processor</dt><dd>{info.cpu_model || '–'}</dd></>}
        <dt>Cores</dt><dd>{info?.cores || '–'} {info?.architecture && <span class="muted">{info.architecture}</span>}</dd>
        <dt>Memory</dt><dd>{num(info?.memory_bytes) > 0 ? bytes(num(info?.memory_bytes)) : '–'}</dd>
        <Health device={device} />
        {device.failures_in_a_row > 0 && <><dt>Failures in a row</dt><dd>{device.failures_in_a_row}</dd></>}
        <dt>System</dt><dd>{info?.os || '–'}</dd>
        <dt>Last seen</dt><dd><Ago time={device.last_seen} /></dd>
      </dl>
      {(info?.tags.length ?? 0) > 0 && <Tags tags={info!.tags} />}
      <div class="actions">
        <a class="button" href={to('history', '', { device: name })}>History</a>
        <button onClick={states}>States</button>
        <a class="button" href={to('jobs', '', { device: name })}>Jobs</a>
        {ask && (off
          ? <button onClick={() => ask('ENABLE')}>Enable</button>
          : <><button onClick={() => ask('RESERVE')}>Reserve</button><button onClick={() => ask('DISABLE')}>Disable</button></>)}
        {ask && device.state === 'OFFLINE' && <button onClick={() => ask('RETIRE')}>Retire</button>}
      </div>
    </article>
  );
}

const GROUPS: readonly { value: string; label: string; states: readonly string[] }[] = [
  { value: '', label: 'All', states: [] },
  { value: 'ready', label: 'Available', states: ['AVAILABLE'] },
  { value: 'busy', label: 'Busy', states: ['BUSY', 'COOLING'] },
  { value: 'away', label: 'Not available', states: ['OFFLINE', 'DISABLED', 'QUARANTINED', 'RESERVED'] },
];

export function DevicesPage({ route }: { route: Route }) {
  const farm = useFarm();
  const devices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices?page_size=1000', signal), 3000, []);
  const [states, setStates] = useState('');
  const [asked, setAsked] = useState<{ device: string; change: Change }>();
  const text = (route.parameters.get('name') ?? '').toLowerCase();
  const group = GROUPS.find((one) => one.value === (route.parameters.get('state') ?? '')) ?? GROUPS[0]!;
  const fits = (device: Device) => {
    const info = device.info;
    const words = `${info?.name} ${info?.model} ${info?.cpu_model} ${info?.tags.join(' ')} ${info?.architecture}`;
    return words.toLowerCase().includes(text);
  };
  return (
    <>
      <Head title="Devices" />
      <Loaded data={devices.data} error={devices.error} retry={devices.refresh}>
        {({ devices: all }) => all.length === 0 ? (
          <Empty icon="devices" title="No device has ever called in">
            <p>Start an agent on the machine to measure: <code>optfarm-agent --server=HOST:PORT --name=NAME</code></p>
          </Empty>
        ) : (
          <>
            <div class="filters">
              <Switch label="State" value={group.value} onChange={(value) => setParameters(route, { state: value })}
                options={GROUPS.map(({ value, label, states }) => ({
                  value, label, count: all.filter((device) => states.length === 0 || states.includes(device.state)).length,
                }))} />
              <Search main label="Name, model or tag" value={route.parameters.get('name') ?? ''} onChange={(value) => setParameters(route, { name: value })} />
            </div>
            <div class="devices">
              {all.filter(fits).filter((device) => group.states.length === 0 || group.states.includes(device.state)).map((device) => (
                <DeviceCard key={device.info?.name} device={device} states={() => setStates(device.info?.name ?? '')}
                  ask={may(farm, 'ADMIN') ? (change) => setAsked({ device: device.info?.name ?? '', change }) : undefined} />
              ))}
            </div>
            {all.filter(fits).length === 0 && <Empty icon="devices" title="No device fits" />}
          </>
        )}
      </Loaded>
      {states !== '' && <StatesDialog device={states} close={() => setStates('')} />}
      {asked && <ChangeDialog {...asked} close={() => setAsked(undefined)} done={devices.refresh} />}
    </>
  );
}
