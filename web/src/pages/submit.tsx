// A new job: drop a model and a folder, see what the graph is fed and answers,
// choose a recipe and devices, go.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, post, upload } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, plural } from '../lib/format';
import { outline, type Outline } from '../lib/models/model_file';
import { toneOfState } from '../lib/job';
import { usePoll } from '../lib/poll';
import { go, to, type Route } from '../lib/route';
import { sha256 } from '../lib/sha256';
import type { Device, Digest, Job, Request } from '../lib/types';
import { Icon } from '../parts/icons';
import { Bar, Card, Empty, ErrorNote, Head, Pill } from '../parts/ui';

// UNITS: bytes of a model that are looked into for the outline.
const MOST_OUTLINED = 512e6;
const UPLOADS_AT_ONCE = 4;

const RECIPES: readonly { name: string; what: string }[] = [
  { name: 'int8', what: '8-bit weights and arithmetic; about a quarter of the size. Wants samples.' },
  { name: 'fp32', what: 'Cleaned up for deployment; the same answers, faster.' },
  { name: 'weights8', what: '8-bit weights, float arithmetic; about a quarter of the size.' },
  { name: 'fp16-weights', what: 'Weights as 16-bit floats; half the size.' },
];
const OTHER = 'other';

interface Sample {
  path: string;
  file: File;
}

interface Scale {
  value: string;
  label: string;
  mean?: number;
  std?: number;
}

const SCALES: readonly Scale[] = [
  { value: 'symmetric', label: '−1 to 1', mean: 127.5, std: 127.5 },
  { value: 'unit', label: '0 to 1', mean: 0, std: 255 },
  { value: 'raw', label: '0 to 255', mean: 0, std: 1 },
  { value: 'recipe', label: 'As the recipe says' },
];

function useModel() {
  const [file, setFile] = useState<File>();
  const [graph, setGraph] = useState<Outline>();
  const [looked, setLooked] = useState(false);
  useEffect(() => {
    setGraph(undefined);
    setLooked(false);
    if (!file || file.size > MOST_OUTLINED) return undefined;
    let gone = false;
    void file.arrayBuffer().then((buffer) => {
      if (gone) return;
      setGraph(outline(new Uint8Array(buffer)));
      setLooked(true);
    });
    return () => { gone = true; };
  }, [file]);
  return { file, setFile, graph, looked };
}

function Drop(props: { label: string; hint: string; directory?: boolean; onFiles: (files: File[]) => void; chosen: string }) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // Not among the properties that JSX knows.
    if (props.directory) input.current?.setAttribute('webkitdirectory', '');
  }, []);
  return (
    <div class={`drop ${over ? 'over' : ''}`}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void droppedFiles(event.dataTransfer).then(props.onFiles);
      }}>
      <Icon name="submit" />
      <strong class="break">{props.chosen || props.label}</strong>
      <span class="small muted">{props.hint}</span>
      <button type="button" onClick={() => input.current?.click()}>{props.chosen ? 'Choose another' : 'Choose'}</button>
      <input ref={input} type="file" class="hidden-text" tabIndex={-1} aria-label={props.label} multiple={props.directory}
        onChange={(event) => props.onFiles([...event.currentTarget.files ?? []])} />
    </div>
  );
}

/** The files of what was dropped, folders opened; their paths are those below the folder. */
async function droppedFiles(transfer: DataTransfer | null): Promise<File[]> {
  const entries = [...transfer?.items ?? []].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const files: File[] = [];
  const walk = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      Object.defineProperty(file, 'webkitRelativePath', { value: path + entry.name });
      files.push(file);
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    // Each call gives a part.
    for (;;) {
      const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (part.length === 0) return;
      for (const child of part) await walk(child, `${path}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, '');
  return files;
}

/** Paths below the chosen folder; files that begin with a dot are nobody's samples. */
function samplesOf(files: readonly File[]): Sample[] {
  return files
    .map((file) => ({ file, path: (file.webkitRelativePath || file.name).split('/').slice(file.webkitRelativePath ? 1 : 0).join('/') }))
    .filter(({ path }) => path !== '' && !path.split('/').some((part) => part.startsWith('.')));
}

function GraphOutline({ graph, file }: { graph: Outline; file: File }) {
  const ops = [...graph.ops].sort((a, b) => b[1] - a[1]);
  return (
    <div class="grid two" style={{ marginBottom: 0 }}>
      <div>
        <h3>Inputs</h3>
        {graph.inputs.length === 0 && <p class="small muted">none</p>}
        {graph.inputs.slice(0, 12).map((input) => (
          <div key={input.name}><span class="mono break">{input.name}</span> <span class="small muted">{input.type} {input.shape || 'any shape'}</span></div>
        ))}
      </div>
      <div>
        <h3>Outputs</h3>
        {graph.outputs.length === 0 && <p class="small muted">none</p>}
        {graph.outputs.slice(0, 12).map((output) => (
          <div key={output.name}><span class="mono break">{output.name}</span> <span class="small muted">{output.op}</span></div>
        ))}
        {graph.outputs.length > 12 && <p class="small muted">and {graph.outputs.length - 12} more</p>}
      </div>
      <p class="small muted" style={{ gridColumn: '1 / -1' }}>
        {plural(graph.nodes, 'node')}, {bytes(file.size)}. Mostly {ops.slice(0, 5).map(([op, count]) => `${count} ${op}`).join(', ')}.
        Read by this browser; the worker decides, or you do below.
      </p>
    </div>
  );
}

interface Step {
  text: string;
  done: number;
  of: number;
}

/** Names and uploads all files and returns their digests in order. */
async function bringFiles(files: readonly File[], tell: (step: Step) => void, signal: AbortSignal): Promise<Digest[]> {
  const total = files.reduce((sum, file) => sum + file.size, 0) || 1;
  const digests: Digest[] = [];
  let read = 0;
  for (const file of files) {
    const before = read;
    const sha = await sha256(file, (done) => {
      read = before + done;
      tell({ text: 'Reading', done: read, of: total });
    }, signal);
    digests.push({ sha256: sha, size_bytes: String(file.size) });
  }
  const { missing } = await post<{ missing: Digest[] }>('/v1/blobs:findMissing', { digests }, signal);
  const wanted = new Set(missing.map((digest) => digest.sha256));
  const waiting = files.map((file, index) => ({ file, sha: digests[index]!.sha256 }))
    .filter(({ sha }) => wanted.delete(sha));
  const size = waiting.reduce((sum, { file }) => sum + file.size, 0) || 1;
  const sent = new Map<string, number>();
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { file, sha } = next;
      await upload(sha, file, (bytesSent) => {
        sent.set(sha, Math.min(bytesSent, file.size));
        tell({ text: 'Uploading', done: [...sent.values()].reduce((sum, one) => sum + one, 0), of: size });
      }, signal);
    }
  };
  await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, worker));
  return digests;
}

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
  noCache: boolean;
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

function specOf(model: File, samples: readonly Sample[], digests: Digest[], choices: Choices): Request<'JobSpec'> {
  const spec: Request<'JobSpec'> = {
    name: choices.name.trim(),
    model: { name: model.name, digest: digests[0]! },
    recipe_name: choices.recipe === OTHER ? choices.ownRecipe.trim() : choices.recipe,
    inputs: words(choices.inputs).map((name) => ({ name })),
    outputs: words(choices.outputs),
    tags: words(choices.tags),
    no_cache: choices.noCache,
  };
  if (samples.length > 0) {
    const { mean, std } = SCALES.find((scale) => scale.value === choices.scale) ?? SCALES[0]!;
    spec.calibration = {
      sources: [{
        role: 'SAMPLES',
        files: samples.map(({ path }, index) => ({ path, digest: digests[index + 1]! })),
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

export function SubmitPage(_props: { route: Route }) {
  const farm = useFarm();
  const model = useModel();
  const [samples, setSamples] = useState<Sample[]>([]);
  const devices = usePoll((signal) => get<{ devices: Device[] }>('/v1/devices?page_size=1000', signal), 5000, []);
  const [choices, setChoices] = useState<Choices>({
    recipe: 'int8', ownRecipe: '', devices: [], threads: '', name: '', tags: '', inputs: '', outputs: '', scale: 'symmetric', noCache: false,
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

  if (!may(farm, 'SUBMIT')) {
    return <Empty icon="submit" title="Your token may not submit">It needs the scope submit.</Empty>;
  }
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!model.file) return;
    setError(undefined);
    const controller = new AbortController();
    stop.current = controller;
    try {
      const digests = await bringFiles([model.file, ...samples.map(({ file }) => file)], setStep, controller.signal);
      setStep({ text: 'Submitting', done: 1, of: 1 });
      const spec = specOf(model.file, samples, digests, choices);
      const text = JSON.stringify(spec);
      if (sent.current?.text !== text) sent.current = { text, key: crypto.getRandomValues(new Uint32Array(4)).join('-') };
      const { job } = await post<{ job: Job }>('/v1/jobs', { spec }, controller.signal, { 'Idempotency-Key': sent.current.key });
      go(to('jobs', job.job_id));
    } catch (thrown) {
      if (!controller.signal.aborted) setError(thrown instanceof ApiError ? thrown : new ApiError(0, 'INTERNAL', String(thrown)));
    } finally {
      setStep(undefined);
    }
  };
  const size = samples.reduce((sum, { file }) => sum + file.size, 0);
  const isGraph = model.graph !== undefined;
  return (
    <>
      <Head title="New job" />
      <form class="form" onSubmit={submit}>
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
        <Card title="Samples" note="Typical inputs, one folder for each class to measure accuracy">
          <Drop directory label="Drop a folder here" hint="JPEG, PNG, WAV or TFRecord files; without any, the result is compared on random inputs"
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
        <Card title="Devices" note="Each measures the original and the result">
          <DeviceChoices devices={all} chosen={choices.devices} choose={(names) => { touched.current = true; set({ devices: names }); }} />
        </Card>
        <details class="card">
          <summary style={{ padding: '13px 18px', cursor: 'pointer', fontWeight: 600 }}>More</summary>
          <div class="body">
            <div class="row-fields">
              <label class="field">Job’s name<input maxLength={200} value={choices.name} onInput={(event) => set({ name: event.currentTarget.value })} /></label>
              <label class="field">Tags<input placeholder="nightly commit=1a2b3c4" value={choices.tags} onInput={(event) => set({ tags: event.currentTarget.value })} /></label>
              <label class="field">Threads<input placeholder="1, 4" pattern="[0-9, ]*" value={choices.threads} onInput={(event) => set({ threads: event.currentTarget.value })} /></label>
            </div>
            <div class="row-fields">
              <label class="field">Inputs<input placeholder="inferred" value={choices.inputs} onInput={(event) => set({ inputs: event.currentTarget.value })} /></label>
              <label class="field">Outputs<input placeholder="inferred" value={choices.outputs} onInput={(event) => set({ outputs: event.currentTarget.value })} /></label>
            </div>
            <label class="check"><input type="checkbox" checked={choices.noCache} onChange={(event) => set({ noCache: event.currentTarget.checked })} />
              Do the work even when the same has been done before</label>
          </div>
        </details>
        {error && <ErrorNote error={error} />}
        {step ? (
          <Card>
            <p role="status">{step.text}{step.of > 1 && `: ${bytes(step.done)} of ${bytes(step.of)}`}</p>
            <Bar value={step.done / step.of} label={step.text} />
            <p class="actions"><button type="button" onClick={() => stop.current?.abort()}>Stop</button></p>
          </Card>
        ) : (
          <p class="actions"><button class="primary" type="submit" disabled={!model.file}>Submit</button>
            {!model.file && <span class="muted small">Choose a model first.</span>}</p>
        )}
      </form>
    </>
  );
}
