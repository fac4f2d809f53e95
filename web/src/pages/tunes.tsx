// All tunes, newest first: what each looks for, how far it is, and what it
// recommends.

import { useState } from 'preact/hooks';
import { get, query } from '../lib/api';
import { may, useFarm } from '../lib/farm';
import { plural, span, when } from '../lib/format';
import { useNow, usePoll } from '../lib/poll';
import { to, type Route } from '../lib/route';
import { budgetShare, effortText, goalOf, isRunning, modelOfTune, tuneSentence } from '../lib/tune';
import type { Tune } from '../lib/types';
import { Table } from '../parts/table';
import { Ago, Bar, Card, Empty, Head, Loaded, StatePill } from '../parts/ui';

const PAGE = 100;
const PERIOD = 3000;

interface Answer {
  tunes: Tune[];
  next_page_token: string;
}

function StateCell({ tune }: { tune: Tune }) {
  const now = useNow(isRunning(tune) ? 1000 : 3_600_000);
  const gone = budgetShare(tune, now);
  return (
    <div class="lines">
      <span><StatePill state={tune.state} /></span>
      <span class="small muted">{tune.progress || tune.failure}</span>
      {isRunning(tune) && !Number.isNaN(gone) && <Bar value={gone} label="Budget used" />}
    </div>
  );
}

function Took({ tune }: { tune: Tune }) {
  const now = useNow(isRunning(tune) ? 1000 : 3_600_000);
  const end = isRunning(tune) ? now : when(tune.end_time);
  return <>{span(Math.max(0, end - when(tune.create_time)) / 1000)}</>;
}

function Found({ tune }: { tune: Tune }) {
  const devices = tune.report?.devices ?? [];
  if (devices.length === 0) return <span class="muted">nothing yet</span>;
  return (
    <ul class="found">
      {devices.slice(0, 4).map((device) => (
        <li key={device.device}>
          <span class="muted">{device.device}</span>{' '}
          {device.recommended === '' ? <span class="muted">–</span> : <b>{device.recommended}</b>}
        </li>
      ))}
      {devices.length > 4 && <li class="muted">and {devices.length - 4} more</li>}
    </ul>
  );
}

export function TunesPage(_props: { route: Route }) {
  const farm = useFarm();
  const [pages, setPages] = useState(1);
  const tunes = usePoll(async (signal): Promise<Answer> => {
    const all: Tune[] = [];
    let token = '';
    let first: Answer | undefined;
    for (let page = 0; page < pages; ++page) {
      const answer = await get<Answer>(`/v1/tunes${query({ page_size: PAGE, page_token: token })}`, signal);
      first ??= answer;
      all.push(...answer.tunes);
      token = answer.next_page_token;
      if (token === '') break;
    }
    // What has not changed is the same object, and is not drawn again.
    return pages === 1 ? first! : { tunes: all, next_page_token: token };
  }, PERIOD, [pages]);
  const begin = may(farm, 'SUBMIT') && <a class="button primary" href={to('submit', '', { kind: 'tune' })}>New tune</a>;
  return (
    <>
      <Head title="Tunes" actions={begin}>
        <p>Searches for the best variant of a model on your devices.</p>
      </Head>
      <Loaded data={tunes.data} error={tunes.error} retry={tunes.refresh}>
        {(data) => data.tunes.length === 0 ? (
          <Empty icon="tunes" title="No tunes yet">
            <p>A tune measures variants of a model on your devices, and names the one to ship on each. Begin one here, or
              with <code>optctl tune model.pb --calibration=pictures/ --device=NAME</code>.</p>
            {begin}
          </Empty>
        ) : (
          <>
            <Card flush>
              <Table label="Tunes" rows={data.tunes} id={(tune) => tune.tune_id} rowClass={() => 'link'} columns={[
                { title: 'Tune', show: (tune) => (
                  <div class="lines">
                    <span><a class="cell-main break" href={to('tunes', tune.tune_id)}>{modelOfTune(tune)}</a></span>
                    <span class="small muted">{goalOf(tune)}</span>
                  </div>
                ) },
                { title: 'State', show: (tune) => <StateCell tune={tune} /> },
                { title: 'To ship', show: (tune) => <Found tune={tune} /> },
                { title: 'Tried', wide: true, show: (tune) => <span class="small">{effortText(tune) || tuneSentence(tune).reason}</span> },
                { title: 'Begun', number: true, show: (tune) => (
                  <div class="lines"><span><Ago time={tune.create_time} /></span><span class="small muted"><Took tune={tune} /></span></div>
                ) },
              ]} />
            </Card>
            <p class="small muted" role="status">{plural(data.tunes.length, 'tune')}{data.next_page_token !== '' && ' so far'}</p>
            {data.next_page_token !== '' && <p class="actions"><button onClick={() => setPages((before) => before + 1)}>Show more</button></p>}
          </>
        )}
      </Loaded>
    </>
  );
}
