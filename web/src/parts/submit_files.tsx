// What a job or a tune is made from: a model's file, looked into, and a folder of
// samples; how both are chosen, dropped, named and uploaded.

import { useEffect, useRef, useState } from 'preact/hooks';
import { post, upload } from '../lib/api';
import { bytes, plural } from '../lib/format';
import { outline, type Outline } from '../lib/models/model_file';
import { sha256 } from '../lib/sha256';
import type { Digest } from '../lib/types';
import { Icon } from './icons';

// UNITS: bytes of a model that are looked into for the outline.
const MOST_OUTLINED = 512e6;
const UPLOADS_AT_ONCE = 4;

export interface Sample {
  path: string;
  file: File;
}

export interface Scale {
  value: string;
  label: string;
  mean?: number;
  std?: number;
}

export const SCALES: readonly Scale[] = [
  { value: 'symmetric', label: '−1 to 1', mean: 127.5, std: 127.5 },
  { value: 'unit', label: '0 to 1', mean: 0, std: 255 },
  { value: 'raw', label: '0 to 255', mean: 0, std: 1 },
  { value: 'recipe', label: 'As the recipe says' },
];

export function useModel() {
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

export function Drop(props: { label: string; hint: string; directory?: boolean; onFiles: (files: File[]) => void; chosen: string }) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  // Not among the properties that JSX knows; there from the first drawing on.
  const directory = props.directory ? { webkitdirectory: true } : {};
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
      <input ref={input} type="file" class="hidden-text" tabIndex={-1} aria-label={props.label} multiple={props.directory} {...directory}
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
export function samplesOf(files: readonly File[]): Sample[] {
  return files
    .map((file) => ({ file, path: (file.webkitRelativePath || file.name).split('/').slice(file.webkitRelativePath ? 1 : 0).join('/') }))
    .filter(({ path }) => path !== '' && !path.split('/').some((part) => part.startsWith('.')));
}

export function GraphOutline({ graph, file }: { graph: Outline; file: File }) {
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

export interface Step {
  text: string;
  done: number;
  of: number;
}

/** Names and uploads all files and returns their digests in order. */
export async function bringFiles(files: readonly File[], tell: (step: Step) => void, signal: AbortSignal): Promise<Digest[]> {
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
