// Calls of the server's REST API. Scripts never see the token: a session's
// cookie goes along by itself, and the header below shows that the call is this
// page's own.

const OWN = { 'Optfarm-Page': '1' };

/** An answer that says no, or none. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly details: unknown[] = [],
  ) {
    super(detail);
  }

  /** The server was not reached; asking again may help. */
  get unreachable(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

type Listener = () => void;
const lostListeners = new Set<Listener>();
let logins = 0;

/**
 * Calls `listener` whenever the server wants a login; not for questions that were
 * asked before the last one, whose answers came late.
 */
export function onSessionLost(listener: Listener): () => void {
  lostListeners.add(listener);
  return () => lostListeners.delete(listener);
}

async function problemOf(response: Response): Promise<ApiError> {
  let problem: { code?: string; detail?: string; title?: string; details?: unknown[] } = {};
  try {
    problem = await response.json();
  } catch {
    // A proxy's page, say.
  }
  return new ApiError(
    response.status,
    problem.code ?? '',
    problem.detail ?? problem.title ?? `the server answered ${response.status}`,
    problem.details ?? [],
  );
}

async function request(path: string, init: RequestInit): Promise<Response> {
  let response;
  const loginsBefore = logins;
  try {
    response = await fetch(path, { cache: 'no-store', ...init, headers: { ...OWN, ...init.headers } });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, 'UNAVAILABLE', 'the server cannot be reached');
  }
  if (response.ok || response.status === 304) return response;
  const problem = await problemOf(response);
  if (problem.status === 401 && logins === loginsBefore) for (const listener of lostListeners) listener();
  throw problem;
}

// Answers that are asked for again and again, by path, the oldest first.
const MOST_KEPT = 40;
const kept = new Map<string, { tag: string; answer: unknown }>();

/**
 * An answer that is as it was is not sent again, and is the same object: nothing
 * is drawn for it.
 */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const known = kept.get(path);
  const response = await request(path, {
    signal: signal ?? null, headers: known ? { 'If-None-Match': known.tag } : {},
  });
  kept.delete(path);
  if (response.status === 304 && known) {
    kept.set(path, known);
    return known.answer as T;
  }
  const answer = await response.json();
  const tag = response.headers.get('ETag');
  if (tag) kept.set(path, { tag, answer });
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  return answer;
}

export async function post<T>(
  path: string,
  body: unknown,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<T> {
  const response = await request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  return response.json();
}

export async function remove<T>(path: string): Promise<T> {
  return (await request(path, { method: 'DELETE' })).json();
}

/** Trades the token for a cookie. */
export async function login(token: string): Promise<void> {
  // A header takes visible ASCII alone.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new ApiError(401, 'UNAUTHENTICATED', 'a token has no blanks and no special letters');
  }
  const response = await fetch('/session', {
    method: 'POST',
    headers: { ...OWN, Authorization: `Bearer ${token}` },
  }).catch(() => {
    throw new ApiError(0, 'UNAVAILABLE', 'the server cannot be reached');
  });
  if (!response.ok) throw await problemOf(response);
  logins += 1;
}

export async function logout(): Promise<void> {
  kept.clear();
  await request('/session', { method: 'DELETE' });
}

/** The bytes of a stored file. */
export async function blob(sha256: string, signal?: AbortSignal): Promise<Blob> {
  return (await request(`/v1/blobs/${sha256}`, { cache: 'default', signal: signal ?? null })).blob();
}

export function blobAddress(sha256: string): string {
  return `/v1/blobs/${sha256}`;
}

/** Uploads a file, telling how many bytes have gone out. */
export function upload(
  sha256: string,
  file: Blob,
  tell: (sent: number) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open('PUT', blobAddress(sha256));
    for (const [name, value] of Object.entries(OWN)) call.setRequestHeader(name, value);
    call.upload.onprogress = (event) => tell(event.loaded);
    call.onload = () => {
      if (call.status >= 200 && call.status < 300) return resolve();
      void problemOf(new Response(call.responseText, { status: call.status })).then(reject);
    };
    call.onerror = () => reject(new ApiError(0, 'UNAVAILABLE', 'the upload broke off'));
    call.onabort = () => reject(new ApiError(0, 'CANCELLED', 'the upload was stopped'));
    signal.addEventListener('abort', () => call.abort());
    call.send(file);
  });
}

/** "?a=1&b=2" of what is set. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '' && value !== false) search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}
