// What jobs came to, for lists: asked for as rows come into sight, many jobs at
// a time, and once each, because a job that has ended does not change.

import { useEffect, useState } from 'preact/hooks';
import { get } from './api';
import { hasEnded, type Job, type Verdict } from './types';

interface Answer {
  jobs: { job_id: string; verdicts: Verdict[] }[];
}

// UNITS: jobs in one question, and jobs that are remembered.
const MOST_ASKED = 200;
const MOST_KNOWN = 5000;

const known = new Map<string, Verdict[]>();
const waiting = new Map<string, Set<(verdicts: Verdict[]) => void>>();
let timer = 0;

function remember(id: string, verdicts: Verdict[]) {
  known.set(id, verdicts);
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value!);
}

async function ask() {
  timer = 0;
  const ids = [...waiting.keys()].slice(0, MOST_ASKED);
  if (ids.length === 0) return;
  const search = ids.map((id) => `job_ids=${encodeURIComponent(id)}`).join('&');
  const asked = ids.map((id) => [id, waiting.get(id)!] as const);
  for (const id of ids) waiting.delete(id);
  if (waiting.size > 0) timer = window.setTimeout(ask, 0);
  let answer: Answer;
  try {
    answer = await get<Answer>(`/v1/jobs:verdicts?${search}`);
  } catch {
    // A list is of use without them.
    return;
  }
  const found = new Map(answer.jobs.map((job) => [job.job_id, job.verdicts]));
  for (const [id, listeners] of asked) {
    const verdicts = found.get(id) ?? [];
    remember(id, verdicts);
    for (const listener of listeners) listener(verdicts);
  }
}

/** The verdicts of a job that has ended; empty until they are known. */
export function useVerdicts(job: Job): Verdict[] {
  const [verdicts, setVerdicts] = useState<Verdict[]>(known.get(job.job_id) ?? job.verdicts);
  const ended = hasEnded(job);
  useEffect(() => {
    if (!ended) return undefined;
    if (job.verdicts.length > 0) remember(job.job_id, job.verdicts);
    const before = known.get(job.job_id);
    if (before) {
      setVerdicts(before);
      return undefined;
    }
    const listeners = waiting.get(job.job_id) ?? new Set();
    listeners.add(setVerdicts);
    waiting.set(job.job_id, listeners);
    if (timer === 0) timer = window.setTimeout(ask, 50);
    return () => {
      listeners.delete(setVerdicts);
      if (listeners.size === 0) waiting.delete(job.job_id);
    };
  }, [job.job_id, ended, job.verdicts]);
  return verdicts;
}

/** The one that matters most: the first no, else unclear, else yes. */
export function mainVerdict(verdicts: readonly Verdict[]): Verdict | undefined {
  for (const answer of ['NO', 'UNCLEAR', 'YES']) {
    const found = verdicts.find((verdict) => verdict.answer === answer);
    if (found) return found;
  }
  return undefined;
}
