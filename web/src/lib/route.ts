// Where in the page we are: "#/jobs/ID?tab=layers".

import { useEffect, useState } from 'preact/hooks';

export interface Route {
  page: string;
  id: string;
  parameters: URLSearchParams;
}

function parse(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...rest] = path.split('/');
  let id = rest.join('/');
  try {
    id = decodeURIComponent(id);
  } catch {
    // Typed by hand; it names nothing.
  }
  return { page: page === '' ? 'jobs' : page, id, parameters: new URLSearchParams(search) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    let known = '';
    const change = () => {
      if (location.hash !== known) setRoute(parse(location.hash));
      known = location.hash;
    };
    addEventListener('hashchange', change);
    // The address may have changed since it was first looked at.
    change();
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

/** The address of a page. */
export function to(
  page: string,
  id = '',
  parameters: Record<string, string | undefined> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') search.set(name, value);
  }
  const text = search.toString();
  return `#/${page}${id === '' ? '' : `/${encodeURIComponent(id)}`}${text === '' ? '' : `?${text}`}`;
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes parameters of the page in the address, without a step in the history. */
export function setParameters(route: Route, changes: Record<string, string | undefined>): void {
  const all: Record<string, string | undefined> = Object.fromEntries(route.parameters);
  history.replaceState(null, '', to(route.page, route.id, { ...all, ...changes }));
  dispatchEvent(new HashChangeEvent('hashchange'));
}
