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

/**
 * Asks when `inputs` change and every `period` milliseconds (0: once) while the
 * tab can be seen.
 */
export function usePoll<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  period: number,
  inputs: readonly unknown[],
): Polled<T> {
  const [state, setState] = useState<{ data?: T | undefined; error?: ApiError | undefined }>({});
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => setState({}), inputs);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const step = async () => {
      if (document.hidden && period > 0) {
        timer = window.setTimeout(step, period);
        return;
      }
      try {
        const data = await latest.current(stop.signal);
        if (stop.signal.aborted) return;
        setState((before) => (before.data === data && before.error === undefined ? before : { data, error: undefined }));
      } catch (error) {
        if (stop.signal.aborted) return;
        setState((before) => ({ data: before.data, error: asError(error) }));
      }
      if (period > 0) timer = window.setTimeout(step, period);
    };
    const seen = () => {
      if (document.hidden || period === 0) return;
      clearTimeout(timer);
      void step();
    };
    document.addEventListener('visibilitychange', seen);
    void step();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [...inputs, period, round]);
  const refresh = useCallback(() => setRound((before) => before + 1), []);
  return { data: state.data, error: state.error, refresh };
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
