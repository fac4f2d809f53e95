// A new job: drop a model and a folder, see what the graph is fed and answers,
// choose a recipe and devices, go.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, post, query } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, plural } from '../lib/format';
import { modelOf, toneOfState } from '../lib/job';
import { usePoll } from '../lib/poll';
import { go, setParameters, to, type Route } from '../lib/route';
import type { Device, Digest, Job, Request, Tune } from '../lib/types';
import { bringFiles, Drop, GraphOutline, samplesOf, SCALES, useModel, type Sample, type Step } from '../parts/submit_files';
import { GoalCard, newGoal, tuneSpecOf, type Goal } from '../parts/tune_goal';
import { Bar, Card, Empty, ErrorNote, Head, Loaded, Pill, Switch } from '../parts/ui';

const RECIPES: readonly { name: string; what: string }[] = [
  { name: 'int8', what: '8-bit weights and arithmetic; about a quarter of the size. Wants samples.' },
  { name: 'fp32', what: 'Cleaned up for deployment; the same answers, faster.' },
  { name: 'weights8', what: '8-bit weights, float arithmetic; about a quarter of the size.' },
  { name: 'weights4', what: '4-bit weights in blocks for matrix products, 8-bit ones elsewhere; a seventh of the size for nets of such products.' },
  { name: 'fp16-weights', what: 'Weights as 16-bit floats; half the size.' },
];
const OTHER = 'other';

const FORMATS = [['ONNX', 'ONNX'], ['TFLITE', 'TensorFlow Lite']] as const;

interface Choices {
  recipe: string;
  ownRecipe: string;
  devices: string[];
  threads: string;
  name: string;
  tags: string;
  inputs: string;
  outputs: string;
  scale: string;
  formats: string[];
  noCache: boolean;
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

function specOf(model: Request<'NamedBlob'>, samples: readonly Sample[], digests: Digest[], choices: Choices): Request<'JobSpec'> {
  const spec: Request<'JobSpec'> = {
    name: choices.name.trim(),
    model,
    recipe_name: choices.recipe === OTHER ? choices.ownRecipe.trim() : choices.recipe,
    inputs: words(choices.inputs).map((name) => ({ name })),
    outputs: words(choices.outputs),
    tags: words(choices.tags),
    no_cache: choices.noCache,
    // With the graph among them, a format that cannot hold the result fails nothing.
    out_formats: choices.formats.length > 0 ? ['PB', ...choices.formats] as Request<'JobSpec'>['out_formats'] & object : [],
  };
  if (samples.length > 0) {
    const { mean, std } = SCALES.find((scale) => scale.value === choices.scale) ?? SCALES[0]!;
    spec.calibration = {
      sources: [{
        role: 'SAMPLES',
        files: samples.map(({ path }, index) => ({ path, digest: digests[index]! })),
        ...(mean !== undefined && std !== undefined ? { mean, std } : {}),
      }],
    };
  }
  if (choices.devices.length > 0) {
    spec.benchmark = { devices: choices.devices, threads: words(choices.threads).map(Number) };
  }
  return spec;
}

function DeviceChoices({ devices, chosen, choose }: { devices: Device[]; chosen: string[]; choose: (names: string[]) => void }) {
  const shown = devices.filter((device) => device.state !== 'DISABLED');
  if (shown.length === 0) return <p class="muted">No device has called in; the model is optimized and not measured.</p>;
  return (
    <div class="choices">
      {shown.map((device) => {
        const name = device.info?.name ?? '';
        return (
          <label class="choice" key={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={(event) =>
              choose(event.currentTarget.checked ? [...chosen, name] : chosen.filter((one) => one !== name))} />
            <span class="lines">
              <span class="cell-main">{name}</span>
              <span><Pill tone={toneOfState(device.state)}>{device.state.toLowerCase()}</Pill></span>
              <span class="small muted">{device.info?.model || device.info?.cpu_model}</span>
            </span>
          </label>
        );
      })}
    </div>
  );
}

type Kind = 'job' | 'tune';

/** What an earlier job used, which the server still has: nothing to upload. */
interface Given {
  job: Job;
  /** Its samples, or those of another job of the same model; absent: none had any. */
  data: { jobId: string; calibration: NonNullable<Job['spec']>['calibration']; files: number } | undefined;
}

// Jobs of the same model that are looked into for samples.
const MOST_LOOKED_INTO = 8;

async function findGiven(jobId: string, signal: AbortSignal): Promise<Given> {
  const whole = (id: string) => get<Job>(`/v1/jobs/${encodeURIComponent(id)}`, signal);
  const dataOf = (job: Job): Given['data'] => {
    const calibration = job.spec?.calibration;
    return calibration && calibration.sources.length > 0
      ? { jobId: job.job_id, calibration, files: calibration.sources.reduce((sum, source) => sum + source.files.length, 0) } : undefined;
  };
  const job = await whole(jobId);
  let data = dataOf(job);
  if (!data) {
    // Rows of the list do not tell.
    const filter = `model=${job.spec?.model?.digest?.sha256 ?? ''}`;
    const { jobs } = await get<{ jobs: Job[] }>(`/v1/jobs${query({ filter, page_size: MOST_LOOKED_INTO })}`, signal);
    for (const other of jobs) data ??= dataOf(await whole(other.job_id));
  }
  return { job, data };
}

function RecipeCard({ choices, set }: { choices: Choices; set: (changes: Partial<Choices>) => void }) {
  return (
    <Card title="Recipe">
      <div class="choices" role="radiogroup" aria-label="Recipe">
        {[...RECIPES, { name: OTHER, what: 'Another one that the workers bring.' }].map((recipe) => (
          <label class="choice" key={recipe.name}>
            <input type="radio" name="recipe" checked={choices.recipe === recipe.name} onChange={() => set({ recipe: recipe.name })} />
            <span class="lines"><span class="cell-main">{recipe.name === OTHER ? 'Other' : recipe.name}</span><span class="small muted">{recipe.what}</span></span>
          </label>
        ))}
      </div>
      {choices.recipe === OTHER && (
        <label class="field">Recipe’s name
          <input required value={choices.ownRecipe} onInput={(event) => set({ ownRecipe: event.currentTarget.value })} />
        </label>
      )}
    </Card>
  );
}

function MoreCard({ kind, choices, set }: { kind: Kind; choices: Choices; set: (changes: Partial<Choices>) => void }) {
  return (
    <details class="card">
      <summary style={{ padding: '13px 18px', cursor: 'pointer', fontWeight: 600 }}>More</summary>
      <div class="body">
        <div class="row-fields">
          {kind === 'job' && (
            <label class="field">Job’s name<input maxLength={200} value={choices.name} onInput={(event) => set({ name: event.currentTarget.value })} /></label>
          )}
          <label class="field">Tags<input placeholder="nightly commit=1a2b3c4" value={choices.tags} onInput={(event) => set({ tags: event.currentTarget.value })} /></label>
          <label class="field">Threads
            <input placeholder={kind === 'job' ? '1, 4' : '1'} pattern={kind === 'job' ? '[0-9, ]*' : '[0-9]*'} value={choices.threads}
              onInput={(event) => set({ threads: event.currentTarget.value })} /></label>
        </div>
        <div class="row-fields">
          <label class="field">Inputs<input placeholder="inferred" value={choices.inputs} onInput={(event) => set({ inputs: event.currentTarget.value })} /></label>
          <label class="field">Outputs<input placeholder="inferred" value={choices.outputs} onInput={(event) => set({ outputs: event.currentTarget.value })} /></label>
        </div>
        {kind === 'job' && FORMATS.map(([value, title]) => (
          <label class="check" key={value}>
            <input type="checkbox" checked={choices.formats.includes(value)} onChange={(event) => set({
              formats: event.currentTarget.checked ? [...choices.formats, value] : choices.formats.filter((one) => one !== value),
            })} />
            Also as {title}, where the format can hold the result</label>
        ))}
        {kind === 'job' && (
          <label class="check"><input type="checkbox" checked={choices.noCache} onChange={(event) => set({ noCache: event.currentTarget.checked })} />
            Do the work even when the same has been done before</label>
        )}
      </div>
    </details>
  );
}

function GivenCard({ given, forget }: { given: Given; forget: () => void }) {
  return (
    <Card title={given.data ? 'Model and samples' : 'Model'} note={<button type="button" onClick={forget}>Choose others</button>}>
      <p><b class="break">{modelOf(given.job)}</b> <span class="mono muted small">{given.job.spec?.model?.digest?.sha256.slice(0, 16)}</span></p>
      <p class="small muted">
        {given.data && <>{plural(given.data.files, 'file')} of
          job <a href={to('jobs', given.data.jobId)}>{given.data.jobId}</a>. </>}
        The server has {given.data ? 'both' : 'it'}; nothing is uploaded.
      </p>
    </Card>
  );
}

function ModelCard({ model }: { model: ReturnType<typeof useModel> }) {
  const isGraph = model.graph !== undefined;
  return (
    <Card title="Model">
      <Drop label="Drop a model here" hint="A frozen TensorFlow graph (.pb), an ONNX or a TensorFlow Lite model" chosen={model.file?.name ?? ''}
        onFiles={(files) => files[0] && model.setFile(files[0])} />
      {model.file && isGraph && <GraphOutline graph={model.graph!} file={model.file} />}
      {model.file && model.looked && !isGraph && (
        <p class="notice calm" style={{ margin: 0 }}>
          This browser does not read it as a model. The server looks at it when you submit; SavedModels and
          checkpoints are frozen by <code>optctl submit</code>.
        </p>
      )}
    </Card>
  );
}

function SamplesCard({ kind, samples, setSamples, choices, set }: {
  kind: Kind;
  samples: Sample[];
  setSamples: (samples: Sample[]) => void;
  choices: Choices;
  set: (changes: Partial<Choices>) => void;
}) {
  const size = samples.reduce((sum, { file }) => sum + file.size, 0);
  const without = kind === 'job' ? 'without any, the result is compared on random inputs' : 'a third is held out for the last judgement';
  return (
    <Card title="Samples" note="Typical inputs, one folder for each class to measure accuracy">
      <Drop directory label="Drop a folder here" hint={`JPEG, PNG, WAV or TFRecord files; ${without}`}
        chosen={samples.length > 0 ? `${plural(samples.length, 'file')}, ${bytes(size)}` : ''} onFiles={(files) => setSamples(samplesOf(files))} />
      {samples.length > 0 && (
        <div class="row-fields">
          <label class="field">Pixels are fed as
            <select value={choices.scale} onChange={(event) => set({ scale: event.currentTarget.value })}>
              {SCALES.map((scale) => <option key={scale.value} value={scale.value}>{scale.label}</option>)}
            </select>
            <span class="hint">as in training</span>
          </label>
        </div>
      )}
    </Card>
  );
}

/** What is still to be chosen; "" when all is there. */
function missing(kind: Kind, hasModel: boolean, hasSamples: boolean, devices: number): string {
  if (!hasModel) return 'Choose a model first.';
  if (kind === 'job') return '';
  if (!hasSamples) return 'A tune judges variants on your data: choose samples.';
  return devices === 0 ? 'Choose a device to tune for.' : '';
}

function SubmitForm({ kind, given, route }: { kind: Kind; given: Given | undefined; route: Route }) {
  const model = useModel();
  const [samples, setSamples] = useState<Sample[]>([]);
  const devices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices?page_size=1000', signal), 5000, []);
  const [goal, setGoal] = useState<Goal>(newGoal);
  const [choices, setChoices] = useState<Choices>({
    recipe: 'int8', ownRecipe: '', devices: [], threads: '', name: '', tags: '', inputs: '', outputs: '', scale: 'symmetric', formats: [], noCache: false,
  });
  const [step, setStep] = useState<Step>();
  const [error, setError] = useState<ApiError>();
  const stop = useRef<AbortController | undefined>(undefined);
  // The same key gives the same job when the answer was lost and the button is
  // pressed again.
  const sent = useRef<{ text: string; key: string } | undefined>(undefined);
  const set = (changes: Partial<Choices>) => setChoices((before) => ({ ...before, ...changes }));
  // The first free device, until somebody chooses.
  const touched = useRef(false);
  const all = devices.data?.devices ?? [];
  useEffect(() => {
    const free = all.find((device) => device.state === 'AVAILABLE');
    if (!touched.current && choices.devices.length === 0 && free?.info) set({ devices: [free.info.name] });
  }, [devices.data]);
  useEffect(() => () => stop.current?.abort(), []);

  const makeSpec = async (signal: AbortSignal): Promise<Request<'JobSpec'>> => {
    const known = given?.job.spec?.model;
    const own = given?.data ? [] : samples;
    const digests = await bringFiles([...(known ? [] : [model.file!]), ...own.map(({ file }) => file)], setStep, signal);
    const named = known ?? { name: model.file!.name, digest: digests.shift()! };
    const spec = specOf(named, own, digests, choices);
    return given?.data?.calibration ? { ...spec, calibration: given.data.calibration } : spec;
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    const controller = new AbortController();
    stop.current = controller;
    try {
      const job = await makeSpec(controller.signal);
      setStep({ text: 'Submitting', done: 1, of: 1 });
      const spec = kind === 'job' ? job : tuneSpecOf(job, choices.devices, Number(choices.threads) || 1, goal);
      const text = JSON.stringify([kind, spec]);
      if (sent.current?.text !== text) sent.current = { text, key: crypto.getRandomValues(new Uint32Array(4)).join('-') };
      const key = sent.current.key;
      if (kind === 'job') {
        const answer = await post<{ job: Job }>('/v1/jobs', { spec }, controller.signal, { 'Idempotency-Key': key });
        go(to('jobs', answer.job.job_id));
      } else {
        const answer = await post<{ tune: Tune }>('/v1/tunes', { spec, client_request_id: key }, controller.signal);
        go(to('tunes', answer.tune.tune_id));
      }
    } catch (thrown) {
      if (!controller.signal.aborted) setError(thrown instanceof ApiError ? thrown : new ApiError(0, 'INTERNAL', String(thrown)));
    } finally {
      setStep(undefined);
    }
  };
  const hasSamples = given?.data !== undefined || samples.length > 0;
  const want = missing(kind, given !== undefined || model.file !== undefined, hasSamples, choices.devices.length);
  return (
    <form class="form" onSubmit={submit}>
      {given ? <GivenCard given={given} forget={() => setParameters(route, { from: '' })} />
        : <ModelCard model={model} />}
      {!given?.data && <SamplesCard kind={kind} samples={samples} setSamples={setSamples} choices={choices} set={set} />}
      {kind === 'job' ? <RecipeCard choices={choices} set={set} />
        : <GoalCard goal={goal} set={(changes) => setGoal((before) => ({ ...before, ...changes }))} devices={choices.devices.length} />}
      <Card title="Devices" note={kind === 'job' ? 'Each measures the original and the result' : 'The best variant is found for each'}>
        <DeviceChoices devices={all} chosen={choices.devices} choose={(names) => { touched.current = true; set({ devices: names }); }} />
      </Card>
      <MoreCard kind={kind} choices={choices} set={set} />
      {error && <ErrorNote error={error} />}
      {step ? (
        <Card>
          <p role="status">{step.text}{step.of > 1 && `: ${bytes(step.done)} of ${bytes(step.of)}`}</p>
          <Bar value={step.done / step.of} label={step.text} />
          <p class="actions"><button type="button" onClick={() => stop.current?.abort()}>Stop</button></p>
        </Card>
      ) : (
        <p class="actions"><button class="primary" type="submit" disabled={want !== ''}>{kind === 'job' ? 'Submit' : 'Begin the tune'}</button>
          {want && <span class="muted small">{want}</span>}</p>
      )}
    </form>
  );
}

export function SubmitPage({ route }: { route: Route }) {
  const farm = useFarm();
  const kind: Kind = route.parameters.get('kind') === 'tune' ? 'tune' : 'job';
  const from = route.parameters.get('from') ?? '';
  const earlier = usePoll(async (signal) => (from === '' ? undefined : findGiven(from, signal)), 0, [from]);
  if (!may(farm, 'SUBMIT')) {
    return <Empty icon="submit" title="Your token may not submit">It needs the scope submit.</Empty>;
  }
  const ready = from === '' || earlier.data !== undefined;
  return (
    <>
      <Head title={kind === 'job' ? 'New job' : 'New tune'}>
        <p>{kind === 'job' ? 'One recipe, measured on the devices you choose.' : 'A search for the best variant, measured on the devices you choose.'}</p>
      </Head>
      <div class="filters">
        <Switch label="What to begin" value={kind} onChange={(value) => setParameters(route, { kind: value === 'tune' ? 'tune' : '' })}
          options={[{ value: 'job', label: 'One job' }, { value: 'tune', label: 'Tune' }]} />
      </div>
      <Loaded data={ready ? true : undefined} error={earlier.error} retry={earlier.refresh}>
        {() => <SubmitForm kind={kind} given={from === '' ? undefined : earlier.data} route={route} />}
      </Loaded>
    </>
  );
}
