// The files that count for a project: which there are, what needs them, and
// removing those that nobody needs any more.

import { useState } from 'preact/hooks';
import { blobAddress, get, post, query } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { bytes, num, plural } from '../lib/format';
import { usePoll } from '../lib/poll';
import { setParameters, to, type Route } from '../lib/route';
import type { BlobList, BlobRemovals, Project, ProjectBlob } from '../lib/types';
import { Table } from '../parts/table';
import { Card, Dialog, Empty, ErrorNote, Loaded, Pill, Search, useAction } from '../parts/ui';

// What one answer of the server has room for, and what one call may remove.
const MOST_LISTED = 1000;
const MOST_REMOVED = 200;

const KINDS = { KIND_UNSPECIFIED: 'unknown', MODEL: 'model', DATA: 'data', ARTIFACT: 'artifact' } as const;

const digestOf = (blob: ProjectBlob) => blob.digest?.sha256 ?? '';
const sizeOf = (blob: ProjectBlob) => num(blob.digest?.size_bytes ?? '0');

/** Its name where a job gave it one, else the beginning of its digest. */
function nameOf(blob: ProjectBlob): string {
  return blob.uses.find((use) => use.name !== '')?.name ?? digestOf(blob).slice(0, 12);
}

/** "45.2 MB of 2 GB", or "45.2 MB" without a limit. */
function useText(list: BlobList): string {
  const used = bytes(num(list.total_bytes));
  return num(list.max_bytes) > 0 ? `${used} of ${bytes(num(list.max_bytes))}` : used;
}

function Remove({ blobs, project, close, done }: { blobs: readonly ProjectBlob[]; project: string; close: () => void; done: (answer: BlobRemovals) => void }) {
  const { run, busy, error } = useAction();
  const size = blobs.reduce((sum, blob) => sum + sizeOf(blob), 0);
  const submit = async (event: Event) => {
    event.preventDefault();
    await run(async () => {
      done(await post<BlobRemovals>('/v1/blobs:remove', { sha256: blobs.map(digestOf), project }));
      close();
    });
  };
  return (
    <Dialog title={`Remove ${plural(blobs.length, 'file')}?`} onClose={close}>
      <form onSubmit={submit}>
        <p class="muted">
          {bytes(size)} no longer count for the project. Its jobs keep their reports and measurements, but the files cannot be
          downloaded for them any more. This cannot be taken back.
        </p>
        {error && <ErrorNote error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>Keep {blobs.length === 1 ? 'it' : 'them'}</button>
          <button type="submit" class="danger" disabled={busy}>Remove {blobs.length === 1 ? 'it' : 'them'}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** What became of the files that were to be removed. */
function Removed({ answer }: { answer: BlobRemovals }) {
  const needed = answer.removals.filter((removal) => removal.outcome === 'NEEDED');
  return (
    <p class={`notice ${needed.length > 0 ? 'unsure' : 'good'}`} role="status">
      {bytes(num(answer.given_back_bytes))} were given back.
      {needed.length > 0 && ` ${plural(needed.length, 'file is', 'files are')} still needed, by ${needed[0]?.needed_by}: cancel it, or wait for its end.`}
    </p>
  );
}

export function Files({ route }: { route: Route }) {
  const farm = useFarm();
  const project = route.parameters.get('project') ?? '';
  const ofFarm = may(farm, 'ADMIN') && farm?.project === '';
  const projects = usePoll((signal) => ofFarm ? get<{ projects: Project[] }>('/v1/projects?page_size=1000', signal) : Promise.resolve({ projects: [] }), 0, [ofFarm]);
  const found = usePoll((signal) => get<BlobList>(`/v1/blobs${query({ project, page_size: MOST_LISTED })}`, signal), 10_000, [project]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [removing, setRemoving] = useState(false);
  const [answer, setAnswer] = useState<BlobRemovals>();
  const mayRemove = may(farm, 'SUBMIT');
  const choose = (sha256: string, on: boolean) => setChosen((before) => {
    const after = new Set(before);
    if (on) after.add(sha256);
    else after.delete(sha256);
    return after;
  });
  return (
    <>
      {ofFarm && (
        <div class="filters">
          <Search main label="Project" value={project} placeholder="default" options={projects.data?.projects.map((one) => one.name) ?? []}
            onChange={(value) => { setChosen(new Set()); setParameters(route, { project: value }); }} />
        </div>
      )}
      {answer && <Removed answer={answer} />}
      <Loaded data={found.data} error={found.error} retry={found.refresh}>
        {(data) => data.blobs.length === 0 ? (
          <Empty icon="models" title="No files">Models, samples and what jobs make of them appear here.</Empty>
        ) : (
          <Card title={`Files of the project ${data.project}`} flush
            note={`${useText(data)}, the largest file first${data.next_page_token && `; these are ${MOST_LISTED}, optctl blobs list --limit=0 lists all`}`}>
            {mayRemove && (
              <p class="actions" style={{ padding: '10px 18px' }}>
                <button class="danger" disabled={chosen.size === 0 || chosen.size > MOST_REMOVED} onClick={() => setRemoving(true)}>
                  {chosen.size === 0 ? 'Remove files' : `Remove ${plural(chosen.size, 'file')}`}
                </button>
                {chosen.size > MOST_REMOVED && <span class="small muted">at most {MOST_REMOVED} at once</span>}
              </p>
            )}
            <Table label="Files" rows={data.blobs} id={digestOf} columns={[
              ...mayRemove ? [{ title: 'Remove', width: '84px', show: (blob: ProjectBlob) => (
                <input type="checkbox" aria-label={`Remove ${nameOf(blob)}`} checked={chosen.has(digestOf(blob))} disabled={blob.live_jobs > 0}
                  title={blob.live_jobs > 0 ? `${plural(blob.live_jobs, 'job')} that ${blob.live_jobs === 1 ? 'waits or runs needs' : 'wait or run need'} it` : undefined}
                  onChange={(event) => choose(digestOf(blob), event.currentTarget.checked)} />
              ) }] : [],
              { title: 'File', key: nameOf, show: (blob) => (
                <div class="lines">
                  {blob.missing ? <span class="break">{nameOf(blob)}</span> : <a class="break" download={nameOf(blob)} href={blobAddress(digestOf(blob))}>{nameOf(blob)}</a>}
                  <span class="small mono muted">{digestOf(blob).slice(0, 16)}</span>
                </div>
              ) },
              { title: 'Kind', key: (blob) => KINDS[blob.uses[0]?.kind ?? 'KIND_UNSPECIFIED'], show: (blob) => (
                <>{KINDS[blob.uses[0]?.kind ?? 'KIND_UNSPECIFIED']}{blob.missing && <> <Pill tone="bad">not on the server</Pill></>}</>
              ) },
              { title: 'Size', number: true, key: sizeOf, show: (blob) => bytes(sizeOf(blob)) },
              { title: 'Newest job', wide: true, show: (blob) => blob.uses[0] && <a class="mono" href={to('jobs', blob.uses[0].job_id)}>{blob.uses[0].job_id}</a> },
              { title: 'Jobs', number: true, wide: true, key: (blob) => blob.jobs, show: (blob) => blob.live_jobs > 0 ? `${blob.jobs}, ${blob.live_jobs} live` : blob.jobs },
            ]} />
          </Card>
        )}
      </Loaded>
      {removing && found.data && (
        <Remove blobs={found.data.blobs.filter((blob) => chosen.has(digestOf(blob)))} project={project} close={() => setRemoving(false)}
          done={(made) => { setAnswer(made); setChosen(new Set()); found.refresh(); }} />
      )}
    </>
  );
}
