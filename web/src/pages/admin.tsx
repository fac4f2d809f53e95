// What operators look after: projects with what they use, tokens, workers and
// agents, the store, the audit log.

import { useState } from 'preact/hooks';
import { get, post, query, remove } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, clock, num, plural } from '../lib/format';
import { usePoll } from '../lib/poll';
import { setParameters, type Route } from '../lib/route';
import type { AuditEntry, Participant, Project, StoreUsage, Token } from '../lib/types';
import { Table } from '../parts/table';
import { Ago, Bar, Card, CopyButton, Dialog, Empty, ErrorNote, Head, Loaded, Pill, Search, Switch, useAction } from '../parts/ui';

const SCOPES = [
  ['READ', 'reading jobs, devices and results; downloading files'],
  ['SUBMIT', 'uploading files, submitting and cancelling jobs'],
  ['WORK', 'working as a worker'],
  ['DEVICE', 'working as an agent'],
  ['ADMIN', 'everything, including tokens'],
] as const;

function NewToken({ close, done }: { close: () => void; done: () => void }) {
  const [name, setName] = useState('');
  const [project, setProject] = useState('');
  const [days, setDays] = useState('90');
  const [scopes, setScopes] = useState<string[]>(['READ']);
  const [secret, setSecret] = useState('');
  const { run, busy, error } = useAction();
  const ofFarm = scopes.some((scope) => scope !== 'READ' && scope !== 'SUBMIT');
  const submit = async (event: Event) => {
    event.preventDefault();
    await run(async () => {
      const made = await post<{ secret: string }>('/v1/tokens', {
        name, scopes, lifetime: `${Math.round(Number(days) * 86400)}s`, project: ofFarm ? '' : project,
      });
      setSecret(made.secret);
      done();
    });
  };
  if (secret !== '') {
    return (
      <Dialog title={`The token ${name}`} onClose={close}>
        <p class="notice unsure">Copy it now: the server keeps only its SHA-256 and cannot show it again.</p>
        <div class="command"><pre tabIndex={0}>{secret}</pre><CopyButton text={secret} /></div>
        <div class="actions"><button class="primary" onClick={close}>Done</button></div>
      </Dialog>
    );
  }
  return (
    <Dialog title="New token" onClose={close}>
      <form onSubmit={submit}>
        <label class="field">Name
          <input required maxLength={64} pattern="[A-Za-z0-9._\-]+" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <span class="hint">letters, digits, dot, underscore and dash</span>
        </label>
        <fieldset style={{ border: 'none', padding: 0, margin: 0, display: 'grid', gap: '6px' }}>
          <legend class="field">Scopes</legend>
          {SCOPES.map(([scope, what]) => (
            <label class="check" key={scope}>
              <input type="checkbox" checked={scopes.includes(scope)} onChange={(event) =>
                setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))} />
              <span><b>{scope.toLowerCase()}</b> <span class="muted small">{what}</span></span>
            </label>
          ))}
        </fieldset>
        <div class="row-fields">
          <label class="field">Days
            <input type="number" min="0.001" max="3650" step="any" required value={days} onInput={(event) => setDays(event.currentTarget.value)} />
          </label>
          <label class="field">Project
            <input value={ofFarm ? '' : project} disabled={ofFarm} placeholder={ofFarm ? 'all' : 'default'} onInput={(event) => setProject(event.currentTarget.value)} />
          </label>
        </div>
        {error && <ErrorNote error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>Close</button>
          <button type="submit" class="primary" disabled={busy || scopes.length === 0}>Make it</button>
        </div>
      </form>
    </Dialog>
  );
}

function Revoke({ token, close, done }: { token: Token; close: () => void; done: () => void }) {
  const { run, busy, error } = useAction();
  const revoke = async (event: Event) => {
    event.preventDefault();
    if (await run(() => remove(`/v1/tokens/${encodeURIComponent(token.token_id)}`))) {
      close();
      done();
    }
  };
  return (
    <Dialog title={`Revoke ${token.name}?`} onClose={close}>
      <form onSubmit={revoke}>
        <p class="muted">Whoever uses it is refused from the next call on. This cannot be taken back.</p>
        {error && <ErrorNote error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>Keep it</button>
          <button type="submit" class="danger" disabled={busy}>Revoke it</button>
        </div>
      </form>
    </Dialog>
  );
}

function stateOf(token: Token): { tone: 'good' | 'bad' | 'calm'; text: string } {
  if (token.revoke_time) return { tone: 'bad', text: 'revoked' };
  if (Date.parse(token.expire_time) < Date.now()) return { tone: 'calm', text: 'expired' };
  return { tone: 'good', text: 'valid' };
}

function Tokens() {
  const tokens = usePoll((signal) => get<{ tokens: Token[] }>('/v1/tokens', signal), 10_000, []);
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  return (
    <>
      <Loaded data={tokens.data} error={tokens.error} retry={tokens.refresh}>
        {(data) => data.tokens.length === 0 ? (
          <Empty icon="admin" title="No tokens yet">
            <p>The operator’s own token is in the server’s <code>--token_file</code>. Make others here for people, pipelines, workers and agents.</p>
            <button class="primary" onClick={() => setMaking(true)}>New token</button>
          </Empty>
        ) : (
          <>
            <p class="actions" style={{ marginBottom: '14px' }}><button class="primary" onClick={() => setMaking(true)}>New token</button></p>
            <Card title="Tokens" note={plural(data.tokens.length, 'token')} flush>
              <Table label="Tokens" rows={data.tokens} id={(token) => token.token_id} columns={[
                { title: 'Name', key: (token) => token.name, show: (token) => <div class="lines"><span class="cell-main">{token.name}</span><span class="small mono muted">{token.token_id}</span></div> },
                { title: 'State', key: (token) => stateOf(token).text, show: (token) => <Pill tone={stateOf(token).tone}>{stateOf(token).text}</Pill> },
                { title: 'Scopes', show: (token) => token.scopes.map((scope) => scope.toLowerCase()).join(', ') },
                { title: 'Project', wide: true, key: (token) => token.project, show: (token) => token.project || <span class="muted">all</span> },
                { title: 'Made', number: true, wide: true, key: (token) => token.create_time, show: (token) => <Ago time={token.create_time} /> },
                { title: 'Expires', number: true, wide: true, key: (token) => token.expire_time, show: (token) => <Ago time={token.expire_time} /> },
                { title: 'Action', show: (token) => stateOf(token).text === 'valid' && <button class="danger" onClick={() => setRevoking(token)}>Revoke</button> },
              ]} />
            </Card>
          </>
        )}
      </Loaded>
      {making && <NewToken close={() => setMaking(false)} done={tokens.refresh} />}
      {revoking && <Revoke token={revoking} close={() => setRevoking(undefined)} done={tokens.refresh} />}
    </>
  );
}

function Audit({ route }: { route: Route }) {
  const of = (key: string) => route.parameters.get(key) ?? '';
  const audit = usePoll((signal) => get<{ entries: AuditEntry[]; next_page_token: string }>(
    `/v1/audit${query({ actor: of('actor'), project: of('project'), method: of('method'), page_size: 500 })}`, signal),
  10_000, [of('actor'), of('project'), of('method')]);
  const set = (key: string) => (value: string) => setParameters(route, { [key]: value });
  return (
    <>
      <div class="filters">
        <Search main label="Who" value={of('actor')} onChange={set('actor')} />
        <Search label="Project" value={of('project')} onChange={set('project')} />
        <Search label="Method" value={of('method')} onChange={set('method')} placeholder="JobService.SubmitJob" />
      </div>
      <Loaded data={audit.data} error={audit.error} retry={audit.refresh}>
        {(data) => data.entries.length === 0 ? <Empty icon="admin" title="No entries" /> : (
          <Card title="Audit log" note={`The newest ${plural(data.entries.length, 'entry', 'entries')}: what changed or took something, and what was refused`} flush>
            <Table label="Audit log" className="nodes" rowHeight={45} rows={data.entries.map((entry, index) => ({ entry, index }))} id={(row) => String(row.index)} columns={[
              { title: 'When', width: '172px', show: ({ entry }) => <span class="nowrap">{clock(entry.time)}</span> },
              { title: 'Who', width: '110px', show: ({ entry }) => entry.actor || <span class="muted">unknown</span> },
              { title: 'What', show: ({ entry }) => <><span class="mono">{entry.method}</span> <span class="small muted" title={entry.subject}>{entry.subject.slice(0, 16)}</span></> },
              { title: 'Outcome', show: ({ entry }) => <span title={entry.message}><Pill tone={entry.outcome === 'OK' ? 'good' : 'bad'}>{entry.outcome}</Pill> <span class="small muted">{entry.message}</span></span> },
              { title: 'Project', width: '100px', wide: true, show: ({ entry }) => entry.project },
              { title: 'From', width: '180px', wide: true, show: ({ entry }) => <span class="mono muted">{entry.peer}</span> },
            ]} />
          </Card>
        )}
      </Loaded>
    </>
  );
}

/** "12 of 100" with a bar, or "12" where there is no limit. */
function Use({ used, most, show = String }: { used: number; most: number; show?: (value: number) => string }) {
  if (most === 0) return <>{show(used)}</>;
  return (
    <div class="lines">
      <span class={used >= most ? 'since bad' : undefined}>{show(used)} of {show(most)}</span>
      <Bar value={Math.min(1, used / most)} label={`${show(used)} of ${show(most)}`} />
    </div>
  );
}

function Projects() {
  const projects = usePoll((signal) => get<{ projects: Project[]; next_page_token: string }>('/v1/projects?page_size=1000', signal), 10_000, []);
  return (
    <Loaded data={projects.data} error={projects.error} retry={projects.refresh}>
      {(data) => data.projects.length === 0 ? (
        <Empty icon="admin" title="No projects yet">A project is there as soon as a token names it, or somebody submits a job.</Empty>
      ) : (
        <Card title="Projects" note={`What each uses of what it may; limits are set with the server’s --project_ flags and --project_limits${data.next_page_token ? '. There are more: optctl projects lists all' : ''}`} flush>
          <Table label="Projects" rows={data.projects} id={(project) => project.name} columns={[
            { title: 'Project', key: (project) => project.name, show: (project) => <div class="lines"><span class="cell-main">{project.name}</span><span class="small muted">{project.own_limits ? 'limits of its own' : 'limits of all'}</span></div> },
            { title: 'Files', number: true, key: (project) => num(project.bytes), show: (project) => <Use used={num(project.bytes)} most={num(project.max_bytes)} show={bytes} /> },
            { title: 'Live jobs', number: true, key: (project) => project.live_jobs, show: (project) => <Use used={project.live_jobs} most={project.max_live_jobs} /> },
            { title: 'Jobs in 24 h', number: true, key: (project) => project.jobs_a_day, show: (project) => <Use used={project.jobs_a_day} most={project.max_jobs_a_day} /> },
            { title: 'Calls a second', number: true, wide: true, show: (project) => project.max_calls_per_second > 0 ? `at most ${project.max_calls_per_second}` : <span class="muted">any</span> },
            { title: 'Tokens', number: true, wide: true, key: (project) => project.tokens, show: (project) => project.tokens },
          ]} />
        </Card>
      )}
    </Loaded>
  );
}

function Workers() {
  const found = usePoll((signal) => get<{ participants: Participant[] }>('/v1/participants?page_size=1000', signal), 5000, []);
  return (
    <Loaded data={found.data} error={found.error} retry={found.refresh}>
      {(data) => data.participants.length === 0 ? (
        <Empty icon="admin" title="Nobody works for this server">
          <p>Start a worker with <code>optfarm-worker --server=HOST:PORT</code>, and an agent on each machine to measure.</p>
        </Empty>
      ) : (
        <Card title="Workers and agents" note="Those that have called within the last hour" flush>
          <Table label="Workers and agents" rows={data.participants} id={(one) => one.participant_id} columns={[
            { title: 'Name', key: (one) => one.name, show: (one) => <div class="lines"><span class="cell-main">{one.name}</span><span class="small mono muted">{one.participant_id}</span></div> },
            { title: 'Kind', key: (one) => one.kind, show: (one) => one.kind.toLowerCase() },
            { title: 'Tasks', number: true, key: (one) => one.tasks, show: (one) => one.tasks },
            { title: 'Version', wide: true, show: (one) => one.build_version },
            { title: 'Since', number: true, wide: true, key: (one) => one.first_seen ?? '', show: (one) => <Ago time={one.first_seen} /> },
            { title: 'Last seen', number: true, key: (one) => one.last_seen ?? '', show: (one) => <Ago time={one.last_seen} /> },
          ]} />
        </Card>
      )}
    </Loaded>
  );
}

function Usage() {
  const usage = usePoll((signal) => get<StoreUsage & { free_bytes?: string }>('/v1/store', signal), 10_000, []);
  return (
    <Loaded data={usage.data} error={usage.error} retry={usage.refresh}>
      {(store) => (
        <Card title="Store" note={`Files in a ${store.blob_engine === 's3' ? 'bucket' : 'folder'}, records in ${store.database_engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`}>
          <dl class="facts-row">
            <div><dt>Files</dt><dd>{num(store.blobs)}</dd></div>
            <div><dt>Bytes</dt><dd><Use used={num(store.blob_bytes) + num(store.staged_bytes)} most={num(store.max_bytes)} show={bytes} /></dd></div>
            <div><dt>Of these uploads under way</dt><dd>{bytes(num(store.staged_bytes))}</dd></div>
            {store.free_bytes !== undefined && <div><dt>Free on the disk</dt><dd>{bytes(num(store.free_bytes))}</dd></div>}
            <div><dt>Evicted since the start</dt><dd>{!store.evicts ? 'never: no --max_store_bytes'
              : num(store.evictions) === 0 ? 'nothing'
                : <>{bytes(num(store.evicted_bytes))} in {plural(num(store.evictions), 'round')}, <Ago time={store.last_eviction_time} /></>}</dd></div>
          </dl>
        </Card>
      )}
    </Loaded>
  );
}

function Backup() {
  const { run, busy, error } = useAction();
  const [made, setMade] = useState<{ path: string; size_bytes: string; sha256: string }>();
  return (
    <Card title="Backup" note="A copy of the database as it is at one moment, while work goes on">
      <p class="muted">The file stays below the server’s data folder and opens with any SQLite.</p>
      <p class="actions" style={{ margin: '12px 0' }}>
        <button disabled={busy} onClick={() => run(async () => setMade(await post('/v1/store:backup', {})))}>{busy ? 'Copying…' : 'Make a backup'}</button>
      </p>
      {error && <ErrorNote error={error} />}
      {made && (
        <p class="notice good" role="status">
          <span class="mono break">{made.path}</span>, {bytes(num(made.size_bytes))}, SHA-256 <span class="mono">{made.sha256.slice(0, 16)}…</span>
        </p>
      )}
    </Card>
  );
}

type Tab = 'projects' | 'tokens' | 'workers' | 'store' | 'audit';

export function AdminPage({ route }: { route: Route }) {
  const farm = useFarm();
  const tab = (route.parameters.get('tab') ?? 'tokens') as Tab;
  if (!may(farm, 'ADMIN')) {
    return <Empty icon="admin" title="Administrators only">Your token does not have the scope admin.</Empty>;
  }
  return (
    <>
      <Head title="Admin" />
      <div class="filters">
        <Switch label="Part" value={tab} onChange={(value) => setParameters(route, { tab: value })} options={[
          { value: 'tokens', label: 'Tokens' }, { value: 'projects', label: 'Projects' }, { value: 'workers', label: 'Workers' },
          { value: 'store', label: 'Store' }, { value: 'audit', label: 'Audit log' }]} />
      </div>
      {tab === 'projects' && <Projects />}
      {tab === 'tokens' && <Tokens />}
      {tab === 'workers' && <Workers />}
      {tab === 'audit' && <Audit route={route} />}
      {tab === 'store' && <><Usage /><Backup /></>}
    </>
  );
}
