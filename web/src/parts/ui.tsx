// Pieces that every page is put together from.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../lib/api';
import { clock, ago } from '../lib/format';
import { stateText, toneOfState, type Tone } from '../lib/job';
import { useNow } from '../lib/poll';
import { Icon } from './icons';

export function Head(props: { title: ComponentChildren; children?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <div class="head">
      <div>
        <h1 class="break">{props.title}</h1>
        {props.children}
      </div>
      {props.actions && <div class="actions">{props.actions}</div>}
    </div>
  );
}

export function Card(props: {
  title?: ComponentChildren;
  note?: ComponentChildren;
  children: ComponentChildren;
  /** The content reaches the edges, as tables do. */
  flush?: boolean;
}) {
  return (
    <section class="card">
      {props.title && (
        <header>
          <h2>{props.title}</h2>
          {props.note && <p>{props.note}</p>}
        </header>
      )}
      {props.flush ? props.children : <div class="body">{props.children}</div>}
    </section>
  );
}

export function Pill({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`pill ${tone}`}>{children}</span>;
}

export function StatePill({ state }: { state: string }) {
  return <Pill tone={toneOfState(state)}>{stateText(state)}</Pill>;
}

export function Tags({ tags }: { tags: readonly string[] }) {
  if (tags.length === 0) return null;
  return <span class="tags">{tags.map((tag) => <span class="tag" key={tag}>{tag}</span>)}</span>;
}

/** How long ago, growing; the exact time when pointed at. */
export function Ago({ time }: { time: string | undefined }) {
  const now = useNow(5000);
  return <time dateTime={time} title={clock(time)}>{ago(time, now)}</time>;
}

export function Bar(props: { value: number; label: string; tone?: Tone }) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, props.value || 0)));
  return (
    <div class={`bar ${props.tone === 'good' || props.tone === 'bad' || props.tone === 'calm' ? props.tone : ''}`}
      role="progressbar" aria-label={props.label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
      <span style={{ width: `${percent}%` }} />
    </div>
  );
}

/** What stands where there is nothing yet, with the way to change that. */
export function Empty(props: { icon?: string; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={props.icon ?? 'calm'} />
      <h2>{props.title}</h2>
      {props.children && <div>{props.children}</div>}
    </div>
  );
}

const HINTS: Record<string, string> = {
  PERMISSION_DENIED: 'Your token does not allow this. Log in with another one, or ask the operator.',
  UNAVAILABLE: 'The page goes on trying.',
};

export function ErrorNote({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <strong>{error.unreachable ? 'No connection' : 'This did not work'}</strong>: {error.message}{' '}
      <span>{HINTS[error.code] ?? ''}</span>{' '}
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}

/** Waiting, an error, or what was asked for. */
export function Loaded<T>(props: {
  data: T | undefined;
  error: ApiError | undefined;
  retry?: () => void;
  /** Heads the page where there is only an error to show. */
  title?: string;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error } = props;
  const late = useLate(data === undefined && error === undefined);
  return (
    <>
      {props.title && data === undefined && <Head title={props.title} />}
      {error && !(data !== undefined && error.unreachable) && (
        <ErrorNote error={error} {...(props.retry ? { retry: props.retry } : {})} />
      )}
      {data !== undefined ? props.children(data) : late && <p class="waiting" role="status">Loading…</p>}
    </>
  );
}

/** True when `waiting` has been for a while; nothing flickers before. */
function useLate(waiting: boolean): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (!waiting) return undefined;
    const timer = setTimeout(() => setLate(true), 250);
    return () => clearTimeout(timer);
  }, [waiting]);
  return waiting && late;
}

export function Switch<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: ComponentChildren; count?: number | undefined }[];
  onChange: (value: T) => void;
}) {
  return (
    <div class="switch" role="group" aria-label={props.label}>
      {props.options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === props.value}
          onClick={() => props.onChange(option.value)}>
          {option.label}
          {option.count !== undefined && <span class="count">{option.count}</span>}
        </button>
      ))}
    </div>
  );
}

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // Not allowed on this page: the text can be selected.
    }
  };
  // Only pages with TLS, and those of this machine, have a clipboard.
  if (!navigator.clipboard) return null;
  return <button type="button" onClick={copy} aria-live="polite">{done ? 'Copied' : label}</button>;
}

/** A text field that answers a moment after the last key. */
export function Search(props: {
  label: string;
  value: string;
  placeholder?: string;
  onChange: (value: string) => void;
  /** The one that the key "/" leads to. */
  main?: boolean;
  options?: readonly string[];
}) {
  const [text, setText] = useState(props.value);
  const timer = useRef(0);
  useEffect(() => setText(props.value), [props.value]);
  const list = `list-${props.label.replace(/\W/g, '-')}`;
  return (
    <label class={`field ${props.main ? 'grow' : ''}`}>
      {props.label}
      <input type="search" value={text} placeholder={props.placeholder} data-main={props.main ? '' : undefined}
        list={props.options ? list : undefined} autocomplete="off" spellcheck={false}
        onInput={(event) => {
          const value = event.currentTarget.value;
          setText(value);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => props.onChange(value.trim()), 250);
        }} />
      {props.options && <datalist id={list}>{props.options.map((option) => <option key={option} value={option} />)}</datalist>}
    </label>
  );
}

export function Select(props: {
  label: string;
  value: string;
  options: readonly (string | { value: string; label: string })[];
  onChange: (value: string) => void;
}) {
  return (
    <label class="field">
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.options.map((option) => {
          const { value, label } = typeof option === 'string' ? { value: option, label: option } : option;
          return <option key={value} value={value}>{label}</option>;
        })}
      </select>
    </label>
  );
}

/** A question in front of the page; Escape and a click beside it close it. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label={props.title} onClose={props.onClose}
      onClick={(event) => { if (event.target === element.current) element.current?.close(); }}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** A button that does something on the server and says when that failed. */
export function useAction(): {
  run: (action: () => Promise<unknown>) => Promise<boolean>;
  busy: boolean;
  error: ApiError | undefined;
} {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = async (action: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    try {
      await action();
      return true;
    } catch (thrown) {
      setError(thrown instanceof ApiError ? thrown : new ApiError(0, 'INTERNAL', String(thrown)));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { run, busy, error };
}
