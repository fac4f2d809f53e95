// A job as one file that needs no network. The server writes the job and the
// files that are shown into the element "data".

import './style.css';

import { render } from 'preact';
import { FilesContext, type ReadFile } from './lib/files';
import { sentenceOf, titleOf } from './lib/job';
import type { Job } from './lib/types';
import { FilesCard } from './parts/job_facts';
import { LayersPart } from './parts/job_layers';
import { Facts, RepeatCard, ResultsPart, Verdict } from './parts/job_summary';
import { Card, Head, StatePill } from './parts/ui';

interface Data {
  job: Job;
  /** In base64, by SHA-256. */
  files: Record<string, string>;
}

const { job, files } = JSON.parse(document.getElementById('data')!.textContent!) as Data;

const read: ReadFile = async (sha256) => {
  const text = files[sha256];
  if (text === undefined) throw new Error('the report does not have this file');
  return new Blob([Uint8Array.from(atob(text), (character) => character.charCodeAt(0))]);
};

/** The logs that the report has, by the task that wrote them. */
function logsOf(): { title: string; text: string }[] {
  const written = [
    ...job.tasks.flatMap((task) => task.artifacts.map((artifact) => (
      { artifact, title: task.kind === 'OPTIMIZE' ? 'Optimize' : `Benchmark ${task.device}` }))),
    ...job.artifacts.map((artifact) => ({ artifact, title: artifact.name })),
  ].filter(({ artifact }) => artifact.name.endsWith('.log'));
  const seen = new Set<string>();
  return written.flatMap(({ artifact, title }) => {
    const sha256 = artifact.digest?.sha256 ?? '';
    const bytes = files[sha256];
    if (bytes === undefined || seen.has(sha256)) return [];
    seen.add(sha256);
    return [{ title, text: new TextDecoder().decode(Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))) }];
  });
}

function LogsCard() {
  const logs = logsOf();
  if (logs.length === 0) return null;
  return (
    <Card title="Log">
      {logs.map(({ title, text }) => (
        <details key={title}>
          <summary>{title}</summary>
          <pre class="log" tabIndex={0}>{text === '' ? '(empty)' : text}</pre>
        </details>
      ))}
    </Card>
  );
}

document.title = `${titleOf(job)}: ${sentenceOf(job).headline}`;
const box = document.createElement('div');
document.body.append(box);
render((
  <FilesContext.Provider value={read}>
    <main>
      <Head title={titleOf(job)} actions={<StatePill state={job.state} />} />
      <Verdict job={job} />
      <Card><Facts job={job} /></Card>
      <ResultsPart job={job} />
      {job.report && <LayersPart job={job} report={job.report} />}
      <RepeatCard job={job} />
      <FilesCard job={job} />
      <LogsCard />
    </main>
    <footer class="small muted">Written by Optfarm{job.job_id ? ` for job ${job.job_id}` : ', without a server'}</footer>
  </FilesContext.Provider>
), box);
// Nothing is behind links any more.
for (const link of box.querySelectorAll('a')) link.removeAttribute('href');
