// The page's frame: who looks at it, the menu, and the part that the address
// names.

import 'uplot/dist/uPlot.min.css';
import './style.css';

import { render, type FunctionComponent } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get, logout, onSessionLost } from './lib/api';
import { FarmContext, may } from './lib/farm';
import { usePoll } from './lib/poll';
import { go, to, useRoute, type Route } from './lib/route';
import type { WhoAmI } from './lib/types';
import { AdminPage } from './pages/admin';
import { ComparePage } from './pages/compare';
import { DevicesPage } from './pages/devices';
import { HistoryPage } from './pages/history';
import { JobPage } from './pages/job';
import { JobsPage } from './pages/jobs';
import { LoginPage } from './pages/login';
import { ModelsPage } from './pages/models';
import { ParetoPage } from './pages/pareto';
import { SubmitPage } from './pages/submit';
import { TunePage } from './pages/tune';
import { TunesPage } from './pages/tunes';
import { Icon, Logo } from './parts/icons';
import { Dialog, Empty, ErrorNote, Head } from './parts/ui';

export interface PageProps {
  route: Route;
}

interface Entry {
  page: string;
  title: string;
  key: string;
  show: FunctionComponent<PageProps>;
}

const MENU: readonly Entry[] = [
  { page: 'jobs', title: 'Jobs', key: 'j', show: ({ route }) => route.id ? <JobPage key={route.id} route={route} /> : <JobsPage route={route} /> },
  { page: 'tunes', title: 'Tunes', key: 't', show: ({ route }) => route.id ? <TunePage key={route.id} route={route} /> : <TunesPage route={route} /> },
  { page: 'submit', title: 'Submit', key: 's', show: SubmitPage },
  { page: 'models', title: 'Models', key: 'm', show: ModelsPage },
  { page: 'devices', title: 'Devices', key: 'd', show: DevicesPage },
  { page: 'history', title: 'History', key: 'h', show: HistoryPage },
  { page: 'compare', title: 'Compare', key: 'c', show: ComparePage },
  { page: 'pareto', title: 'Pareto', key: 'p', show: ParetoPage },
  { page: 'admin', title: 'Admin', key: 'a', show: AdminPage },
];

type Theme = 'light' | 'dark' | '';

function useTheme(): () => void {
  const [theme, setTheme] = useState<Theme>(() => (localStorage.getItem('theme') as Theme | null) ?? '');
  // Before the browser paints: nobody sees the old colours for a moment.
  useLayoutEffect(() => {
    if (theme === '') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme;
    // Charts are drawn with the colours of the moment.
    dispatchEvent(new Event('themechange'));
  }, [theme]);
  const turn = () => {
    const dark = theme === '' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
    const next = dark ? 'light' : 'dark';
    localStorage.setItem('theme', next);
    setTheme(next);
  };
  return turn;
}

/** "g j" leads to the jobs, "/" to the page's search, "?" shows all keys. */
function useKeys(help: () => void): void {
  const leading = useRef(0);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, select, textarea, dialog')) return;
      if (event.key === '?') return help();
      if (event.key === '/') {
        event.preventDefault();
        document.querySelector<HTMLElement>('[data-main]')?.focus();
        return;
      }
      const entry = MENU.find((candidate) => candidate.key === event.key);
      if (entry && event.timeStamp - leading.current < 1000) go(to(entry.page));
      leading.current = event.key === 'g' ? event.timeStamp : 0;
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [help]);
}

function KeysDialog({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" onClose={close}>
      <dl>
        {MENU.map((entry) => (
          <>
            <dt><kbd>g</kbd> <kbd>{entry.key}</kbd></dt>
            <dd>{entry.title}</dd>
          </>
        ))}
        <dt><kbd>/</kbd></dt><dd>Search this page</dd>
        <dt><kbd>?</kbd></dt><dd>These keys</dd>
      </dl>
    </Dialog>
  );
}

function FarmBox({ farm, leave, theme }: { farm: WhoAmI; leave: (() => void) | undefined; theme: () => void }) {
  return (
    <div class="farm">
      <div class="row wide"><span>Workers</span><b>{farm.workers}</b></div>
      <div class="row wide"><span>Agents</span><b>{farm.agents}</b></div>
      <div class="row wide"><span>You are</span><b class="break">{farm.name}</b></div>
      {farm.project && <div class="row wide"><span>Project</span><b class="break">{farm.project}</b></div>}
      <div class="row">
        <button class="plain" onClick={theme} title="Switch between light and dark"><Icon name="moon" />Theme</button>
        {leave && <button class="plain" onClick={leave}>Log out</button>}
      </div>
      <div class="row wide small"><span>Optfarm {farm.version}</span><a href="/docs">API</a></div>
    </div>
  );
}

function Frame({ farm, leave, offline, turnTheme }: {
  farm: WhoAmI;
  leave: (() => void) | undefined;
  offline: boolean;
  turnTheme: () => void;
}) {
  const route = useRoute();
  const [keys, setKeys] = useState(false);
  const main = useRef<HTMLElement>(null);
  const help = useCallback(() => setKeys(true), []);
  useKeys(help);
  const entry = MENU.find((candidate) => candidate.page === route.page);
  const place = `${route.page}/${route.id}`;
  const first = useRef(place);
  // At once, or a key that follows quickly would lose what it chose.
  useLayoutEffect(() => {
    document.title = `${entry?.title ?? 'Not found'} · Optfarm`;
    if (first.current === place) return;
    first.current = '';
    // A reader who cannot see the change is taken to it.
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [place]);
  const Page = entry?.show;
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      {offline && <div class="banner" role="status">The server cannot be reached; what you see may be old. Trying again…</div>}
      <header class="side">
        <a class="brand" href={to('jobs')}><Logo />Optfarm</a>
        <nav class="menu" aria-label="Pages">
          {MENU.filter((candidate) => candidate.page !== 'admin' || may(farm, 'ADMIN'))
            .filter((candidate) => candidate.page !== 'submit' || may(farm, 'SUBMIT'))
            .map((candidate) => (
              <a key={candidate.page} href={to(candidate.page)} aria-current={candidate === entry ? 'page' : undefined}>
                <Icon name={candidate.page} />{candidate.title}
              </a>
            ))}
        </nav>
        <FarmBox farm={farm} leave={leave} theme={turnTheme} />
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        {farm.workers === 0 && (
          <p class="notice unsure" role="status">
            No worker is connected: jobs wait until one is. Start one
            with <code>optfarm-worker --server=HOST:PORT</code>.
          </p>
        )}
        {Page ? <Page route={route} /> : (
          <>
            <Head title="There is no such page" />
            <Empty title="Nothing is here"><a href={to('jobs')}>To the jobs</a></Empty>
          </>
        )}
      </main>
      {keys && <KeysDialog close={() => setKeys(false)} />}
    </div>
  );
}

/** As the document has it before this script runs (build.mjs). */
function Waiting() {
  return (
    <div class="frame">
      <header class="side"><span class="brand">Optfarm</span></header>
      <main />
    </div>
  );
}

/** The page of somebody whom the server may know; `lost` where it does not. */
function Session({ lost, turnTheme }: { lost: () => void; turnTheme: () => void }) {
  const farm = usePoll((signal) => get<WhoAmI>('/v1/whoami', signal), 5000, []);
  if (!farm.data) {
    if (farm.error && farm.error.status !== 401) {
      return <div class="login"><ErrorNote error={farm.error} retry={farm.refresh} /></div>;
    }
    return <Waiting />;
  }
  const leave = async () => {
    try {
      await logout();
    } finally {
      lost();
    }
  };
  return (
    <FarmContext.Provider value={farm.data}>
      <Frame farm={farm.data} leave={farm.data.name === 'anybody' ? undefined : leave}
        offline={farm.error?.unreachable ?? false} turnTheme={turnTheme} />
    </FarmContext.Provider>
  );
}

function App() {
  const [wanted, setWanted] = useState(false);
  const lost = useCallback(() => setWanted(true), []);
  useEffect(() => onSessionLost(lost), []);
  const turnTheme = useTheme();
  return wanted ? <LoginPage done={() => setWanted(false)} /> : <Session lost={lost} turnTheme={turnTheme} />;
}

render(<App />, document.body);
