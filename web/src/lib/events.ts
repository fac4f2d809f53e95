// A job's events as they happen. The browser goes on after the last one that it
// has seen when the line breaks.

import { useEffect, useRef, useState } from 'preact/hooks';
import { clock, words } from './format';
import { stateText } from './job';
import type { JobEvent } from './types';

// UNITS: characters of log kept in the page; the whole log is among the files.
const MOST_LOG = 400_000;

export interface LogPart {
  task: string;
  text: string;
}

const KINDS = ['job_state', 'task_state', 'progress', 'log'];

/**
 * Follows a job to its end. `changed` is called soon after events that change
 * the job, once for many.
 */
export function useEvents(jobId: string, changed: () => void): { log: LogPart[]; live: boolean; cut: boolean } {
  const [log, setLog] = useState<LogPart[]>([]);
  const [live, setLive] = useState(true);
  const [cut, setCut] = useState(false);
  const latest = useRef(changed);
  latest.current = changed;
  useEffect(() => {
    const source = new EventSource(`/v1/jobs/${encodeURIComponent(jobId)}/events`);
    let held: LogPart[] = [];
    let timer = 0;
    let dirty = false;
    const flush = () => {
      timer = 0;
      if (held.length > 0) {
        const fresh = held;
        held = [];
        setLog((before) => trim([...before, ...fresh], () => setCut(true)));
      }
      if (dirty) {
        dirty = false;
        latest.current();
      }
    };
    const take = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as JobEvent;
      held.push({ task: event.task_id, text: textOf(event) });
      if (!event.log) dirty = true;
      if (timer === 0) timer = window.setTimeout(flush, 120);
    };
    for (const kind of KINDS) source.addEventListener(kind, take as EventListener);
    const end = () => {
      source.close();
      setLive(false);
    };
    source.addEventListener('end', end);
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) setLive(false);
    };
    return () => {
      source.close();
      clearTimeout(timer);
    };
  }, [jobId]);
  return { log, live, cut };
}

/** An event as lines of the log. What a task printed stands as it is. */
function textOf(event: JobEvent): string {
  if (event.log) return event.log.text.endsWith('\n') ? event.log.text : `${event.log.text}\n`;
  const who = event.task_id.split('/').slice(1).join('/') || 'job';
  const line = (text: string) => `${clock(event.time).slice(11)}  ${who}: ${text}\n`;
  if (event.progress) {
    return line(`${event.progress.message || 'goes on'} (${Math.round(100 * event.progress.fraction)} %)`);
  }
  const failure = event.job_state?.failure ?? event.task_state?.failure;
  const parts = [
    event.job_state ? words(event.job_state.state) : stateText(event.task_state?.state ?? ''),
    event.task_state?.message ?? '', failure?.message ?? ''];
  return line(parts.filter((part) => part !== '').join(', '));
}

function trim(parts: LogPart[], tell: () => void): LogPart[] {
  let size = parts.reduce((sum, part) => sum + part.text.length, 0);
  let first = 0;
  while (size > MOST_LOG && first < parts.length - 1) {
    size -= parts[first]!.text.length;
    first += 1;
  }
  if (first > 0) tell();
  return first > 0 ? parts.slice(first) : parts;
}
