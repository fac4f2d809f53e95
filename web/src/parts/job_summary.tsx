// What a job's page and its report both show: the verdict, facts, results, and
// how to do it again.

import { clock, points, share, span, times, when } from '../lib/format';
import { commandsOf, recipeOf, sentenceOf } from '../lib/job';
import { useNow } from '../lib/poll';
import { to } from '../lib/route';
import { hasEnded, type Job } from '../lib/types';
import { Icon } from './icons';
import { ExportsCard } from './job_exports';
import { FromCard, WarningsCard } from './job_facts';
import { GatesCard, ResultsCard } from './job_results';
import { Ago, Card, CopyButton, Empty, Tags } from './ui';

export function Verdict({ job }: { job: Job }) {
  const sentence = sentenceOf(job);
  const best = job.verdicts
    .filter((verdict) => verdict.answer !== 'BASELINE')
    .sort((a, b) => (b.speedup || 0) - (a.speedup || 0))[0];
  return (
    <section class={`verdict ${sentence.tone}`} aria-label="Verdict">
      <Icon name={sentence.tone} />
      <div>
        <h2>{sentence.headline}</h2>
        {sentence.reason && <p>{sentence.reason}</p>}
      </div>
      {best && (
        <div class="facts">
          {best.speedup > 0 && <span class="fact"><b>{times(best.speedup)}</b><span>{job.verdicts.length > 2 ? 'faster, at best' : 'faster'}</span></span>}
          {best.size_ratio > 0 && <span class="fact"><b>{times(best.size_ratio)}</b><span>the size</span></span>}
          {best.top1_change !== undefined
            ? <span class="fact"><b>{points(best.top1_change)}</b><span>points of top-1</span></span>
            : best.agreement !== undefined && <span class="fact"><b>{share(best.agreement)}</b><span>same answers</span></span>}
        </div>
      )}
    </section>
  );
}

export function Facts({ job }: { job: Job }) {
  const now = useNow(hasEnded(job) ? 3_600_000 : 1000);
  const start = when(job.start_time);
  const end = hasEnded(job) ? when(job.end_time) : now;
  return (
    <dl class="facts-row">
      {/* A job of `optctl run` has neither an id nor a project. */}
      {job.job_id && <div><dt>Job</dt><dd class="mono">{job.job_id}</dd></div>}
      <div><dt>{job.job_id ? 'Submitted' : 'Begun'}</dt><dd title={clock(job.create_time)}><Ago time={job.create_time} /></dd></div>
      {!Number.isNaN(start) && <div><dt>{hasEnded(job) ? 'Took' : 'Runs for'}</dt><dd>{span(Math.max(0, end - start) / 1000)}</dd></div>}
      <div><dt>Recipe</dt><dd>{recipeOf(job)}</dd></div>
      {job.project && <div><dt>Project</dt><dd>{job.project}</dd></div>}
      {job.from_cache && (
        <div><dt>From the cache:</dt><dd><a href={to('jobs', job.cached_from_job_id)}>{job.cached_from_job_id}</a></dd></div>
      )}
      {(job.spec?.tags.length ?? 0) > 0 && <div><dt>Tags</dt><dd><Tags tags={job.spec!.tags} /></dd></div>}
    </dl>
  );
}

export function ResultsPart({ job }: { job: Job }) {
  if (!job.report && job.measurements.length === 0) {
    return hasEnded(job)
      ? <Empty icon="bad" title="There are no results">The job ended before anything was made. Its log says more.</Empty>
      : <Empty icon="busy" title="No results yet">They come when the model is optimized, device by device.</Empty>;
  }
  return (
    <>
      <ResultsCard job={job} />
      <ExportsCard job={job} />
      <div class="grid two">
        {job.gates.length > 0 && <GatesCard job={job} />}
        {job.report && <WarningsCard report={job.report} job={job} />}
      </div>
      {job.report && <FromCard job={job} report={job.report} />}
    </>
  );
}

export function RepeatCard({ job }: { job: Job }) {
  return (
    <Card title="Do it again" note="The same work from a terminal">
      {commandsOf(job).map(({ title, command }) => (
        <div key={title}>
          <h3>{title}</h3>
          <div class="command"><pre tabIndex={0}>{command}</pre><CopyButton text={command} /></div>
        </div>
      ))}
    </Card>
  );
}
