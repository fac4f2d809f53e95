// The jobs of a project as they change, for lists.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Job } from './types';

// UNITS: milliseconds. Changes within this time are told together.
const GATHER = 300;

/**
 * Calls `changed` with the jobs that are new or changed, once for many, and with
 * none when there were too many to tell: whoever lists jobs asks again then.
 * Returns whether changes are told; while they are not, lists have to be asked
 * for again and again.
 */
export function useJobFeed(changed: (jobs: Job[]) => void): boolean {
  const [live, setLive] = useState(false);
  const latest = useRef(changed);
  latest.current = changed;
  useEffect(() => {
    const source = new EventSource('/v1/jobs:watch');
    const held = new Map<string, Job>();
    let missed = false;
    let timer = 0;
    const flush = () => {
      timer = 0;
      const jobs = missed ? [] : [...held.values()];
      held.clear();
      missed = false;
      latest.current(jobs);
    };
    const soon = () => {
      if (timer === 0) timer = window.setTimeout(flush, GATHER);
    };
    const miss = () => {
      missed = true;
      soon();
    };
    source.addEventListener('ready', () => {
      setLive(true);
      miss();
    });
    source.addEventListener('missed', miss);
    source.addEventListener('job', (message) => {
      const { job } = JSON.parse((message as MessageEvent<string>).data) as { job: Job };
      held.set(job.job_id, job);
      soon();
    });
    // The browser comes back by itself unless the server said no.
    source.onerror = () => setLive(false);
    return () => {
      source.close();
      clearTimeout(timer);
    };
  }, []);
  return live;
}
