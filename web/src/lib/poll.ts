// Data that is asked for again and again while somebody looks.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api';

export interface Polled<T> {
  /** The last answer, also while later questions fail. */
  data: T | undefined;
  /** Why the last question was not answered. */
  error: ApiError | undefined;
  /** Asks now. */
  refresh: () => void;
}

function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'INTERNAL', String(error));
}

// UNITS: milliseconds. How soon a question without an answer is asked again, and
// how long the answer is waited for where it is asked for again and again: a line
// that broke unseen would be waited on for ever. Large files take longer.
const SOON = 5000;
const MOST_WAIT = 60_000;

function isSame(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((one, index) => Object.is(one, others[index]));
}

/**
 * Asks when `inputs` change and every `period` milliseconds (0: once) while the
 * tab can be seen, sooner when the server was not reached. With new inputs the
 * answer to the old ones is gone at once.
 */
export function usePoll<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  period: number,
  inputs: readonly unknown[],
): Polled<T> {
  // The inputs of the moment, the same array until one of them changes.
  const current = useRef(inputs);
  if (!isSame(current.current, inputs)) current.current = inputs;
  const [state, setState] = useState<{ to?: readonly unknown[]; data?: T | undefined; error?: ApiError | undefined }>({});
  const latest = useRef(ask);
  latest.current = ask;
  const now = useRef(() => {});
  useEffect(() => {
    const to = current.current;
    // The question that is under way.
    let question: AbortController | undefined;
    let stale = false;
    let timer = 0;
    const again = (time: number) => {
      question = undefined;
      if (stale) void step();
      else if (time > 0) timer = window.setTimeout(step, time);
    };
    const step = async () => {
      if (document.hidden && period > 0) {
        timer = window.setTimeout(step, period);
        return;
      }
      stale = false;
      const own = question = new AbortController();
      const deadline = period > 0 ? setTimeout(() => own.abort(), MOST_WAIT) : 0;
      try {
        const data = await latest.current(own.signal);
        if (own !== question) return;
        setState((before) => (before.to === to && before.data === data && before.error === undefined ? before : { to, data }));
        again(period);
      } catch (thrown) {
        if (own !== question) return;
        const error = own.signal.aborted ? new ApiError(0, 'DEADLINE_EXCEEDED', 'the server does not answer') : asError(thrown);
        setState((before) => ({ to, data: before.to === to ? before.data : undefined, error }));
        again(error.unreachable ? Math.min(period || SOON, SOON) : period);
      } finally {
        clearTimeout(deadline);
      }
    };
    const stop = () => {
      clearTimeout(timer);
      const last = question;
      question = undefined;
      last?.abort();
    };
    // A question under way is not given up for another: under many changes none
    // would be answered.
    now.current = () => {
      stale = true;
      clearTimeout(timer);
      if (!question) void step();
    };
    const seen = () => {
      if (document.hidden || period === 0) return;
      stop();
      void step();
    };
    document.addEventListener('visibilitychange', seen);
    void step();
    return () => {
      now.current = () => {};
      stop();
      document.removeEventListener('visibilitychange', seen);
    };
  }, [current.current, period]);
  const refresh = useCallback(() => now.current(), []);
  const known = state.to === current.current;
  return { data: known ? state.data : undefined, error: known ? state.error : undefined, refresh };
}

/** The time, for ages that grow while one looks. */
export function useNow(period = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), period);
    return () => clearInterval(timer);
  }, [period]);
  return now;
}
