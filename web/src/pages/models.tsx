// The models that were submitted: versions by digest, what was made of each,
// and where it stands. Put together from the newest jobs. Beside them, the files
// that a project keeps on the server.

import { useMemo } from 'preact/hooks';
import { get } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, num, plural, when } from '../lib/format';
import { modelOf, recipeOf } from '../lib/job';
import { usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import type { Job } from '../lib/types';
import { Table } from '../parts/table';
import { Ago, Card, Empty, Head, Loaded, Search, StatePill, Switch } from '../parts/ui';
import { Files } from './files';

const NEWEST = 1000;

interface Version {
  sha256: string;
  size: number;
  jobs: Job[];
}

interface Model {
  name: string;
  versions: Version[];
  jobs: number;
  newest: string;
}

/** Newest first: models, their versions, and the jobs of those. */
function modelsOf(jobs: readonly Job[]): Model[] {
  const models = new Map<string, Map<string, Version>>();
  for (const job of jobs) {
    const digest = job.spec?.model?.digest;
    if (!digest) continue;
    const name = modelOf(job);
    const versions = models.get(name) ?? new Map<string, Version>();
    models.set(name, versions);
    const version = versions.get(digest.sha256) ?? { sha256: digest.sha256, size: num(digest.size_bytes), jobs: [] };
    versions.set(digest.sha256, version);
    version.jobs.push(job);
  }
  return [...models].map(([name, versions]) => {
    const all = [...versions.values()];
    const times = all.flatMap((version) => version.jobs.map((job) => job.create_time));
    return {
      name, versions: all, jobs: all.reduce((sum, version) => sum + version.jobs.length, 0),
      newest: times.sort((a, b) => when(b) - when(a))[0] ?? '',
    };
  });
}

/** The newest job of each recipe. */
function byRecipe(version: Version): Job[] {
  const newest = new Map<string, Job>();
  for (const job of version.jobs) {
    const recipe = recipeOf(job);
    if (!newest.has(recipe)) newest.set(recipe, job);
  }
  return [...newest.values()];
}

function ModelCard({ model, open }: { model: Model; open: boolean }) {
  const mayTune = may(useFarm(), 'SUBMIT');
  const newest = model.versions[0]?.jobs[0];
  return (
    <Card title={<span class="break">{model.name}</span>}
      note={<>{plural(model.versions.length, 'version')}, {plural(model.jobs, 'job')}, last <Ago time={model.newest} /></>} flush>
      <Table label={`Versions of ${model.name}`} rows={open ? model.versions : model.versions.slice(0, 3)} id={(version) => version.sha256} columns={[
        { title: 'Version', width: '190px', show: (version) => (
          <div class="lines"><span class="mono">{version.sha256.slice(0, 16)}</span><span class="small muted">{bytes(version.size)}</span></div>
        ) },
        { title: 'What was made of it', show: (version) => (
          <ul class="made">
            {byRecipe(version).map((job) => (
              <li key={job.job_id}>
                <span><StatePill state={job.state} /></span>
                <span>
                  <a href={to('jobs', job.job_id)}>{recipeOf(job)}</a>{' '}
                  <span class="small muted"><Ago time={job.create_time} />{job.failure && `: ${job.failure.message}`}</span>
                </span>
              </li>
            ))}
          </ul>
        ) },
        { title: 'Jobs', number: true, wide: true, show: (version) => <a href={to('jobs', '', { model: version.sha256 })}>{version.jobs.length}</a> },
      ]} />
      <p class="actions" style={{ padding: '10px 18px' }}>
        {!open && model.versions.length > 3 && <a href={to('models', '', { model: model.name })}>All {model.versions.length} versions</a>}
        <a href={to('pareto', '', { model: model.name })}>Size against latency</a>
        <a href={to('history', '', { model: model.name })}>History</a>
        {mayTune && newest && <a href={to('submit', '', { kind: 'tune', from: newest.job_id })}>Tune it for your devices</a>}
      </p>
    </Card>
  );
}

function Models({ route }: { route: Route }) {
  const jobs = usePoll((signal) => get<{ jobs: Job[]; next_page_token: string }>(`/v1/jobs?page_size=${NEWEST}`, signal), 10_000, []);
  const models = useMemo(() => modelsOf(jobs.data?.jobs ?? []), [jobs.data]);
  const text = route.parameters.get('model') ?? '';
  const fits = models.filter((model) => model.name.toLowerCase().includes(text.toLowerCase()) ||
    model.versions.some((version) => text.length >= 6 && version.sha256.startsWith(text)));
  return (
    <>
      <Loaded data={jobs.data} error={jobs.error} retry={jobs.refresh}>
        {(data) => models.length === 0 ? (
          <Empty icon="models" title="No models yet">A model appears here with its first job.</Empty>
        ) : (
          <>
            <div class="filters">
              <Search main label="Model" placeholder="file name or SHA-256" value={text} options={models.map((model) => model.name)}
                onChange={(value) => setParameters(route, { model: value })} />
            </div>
            {data.next_page_token !== '' && <p class="notice calm">Models of the newest {NEWEST} jobs.</p>}
            {fits.map((model) => <ModelCard key={model.name} model={model} open={model.name === text} />)}
            {fits.length === 0 && <Empty icon="models" title="No model fits" />}
          </>
        )}
      </Loaded>
    </>
  );
}

export function ModelsPage({ route }: { route: Route }) {
  const tab = route.parameters.get('tab') === 'files' ? 'files' : 'models';
  return (
    <>
      <Head title="Models" />
      <div class="filters">
        <Switch label="Part" value={tab} onChange={(value) => setParameters(route, { tab: value === 'files' ? value : '' })} options={[
          { value: 'models', label: 'Models' }, { value: 'files', label: 'Files' }]} />
      </div>
      {tab === 'files' ? <Files route={route} /> : <Models route={route} />}
    </>
  );
}
