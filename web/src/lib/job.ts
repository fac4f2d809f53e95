// What is said about a job in one place: its name, its verdict, why it waits,
// and the command that does the same again.

import { plural, quoted, words } from './format';
import { hasEnded, type Device, type Job, type Task, type Verdict, type WhoAmI } from './types';

export function recipeOf(job: Job): string {
  return job.spec?.recipe?.name || job.spec?.recipe_name || '–';
}

export function modelOf(job: Job): string {
  return job.spec?.model?.name || job.spec?.model?.digest?.sha256.slice(0, 12) || 'model';
}

export function titleOf(job: Job): string {
  return job.spec?.name || `${modelOf(job)} · ${recipeOf(job)}`;
}

export type Tone = 'good' | 'bad' | 'unsure' | 'busy' | 'calm';

export function toneOfState(state: string): Tone {
  switch (state) {
    case 'SUCCEEDED': case 'TUNE_SUCCEEDED': case 'TASK_DONE': case 'AVAILABLE': return 'good';
    case 'FAILED': case 'TUNE_FAILED': case 'TASK_FAILED': case 'QUARANTINED': return 'bad';
    case 'RUNNING': case 'TUNE_RUNNING': case 'LEASED': case 'BUSY': return 'busy';
    case 'COOLING': case 'RESERVED': return 'unsure';
    default: return 'calm';
  }
}

const STATES: Record<string, string> = {
  TASK_DONE: 'done', TASK_FAILED: 'failed', TASK_CANCELLED: 'cancelled', LEASED: 'running', READY: 'waiting',
};

export function stateText(state: string): string {
  return STATES[state] ?? words(state.replace(/^TUNE_/, ''));
}

export function toneOfAnswer(answer: string): Tone {
  return ({ YES: 'good', NO: 'bad', UNCLEAR: 'unsure' } as Record<string, Tone>)[answer] ?? 'calm';
}

/** Verdicts about what the job made, not about the original. */
function decided(job: Job): Verdict[] {
  return job.verdicts.filter((verdict) => verdict.answer !== 'BASELINE');
}

export interface Sentence {
  tone: Tone;
  headline: string;
  reason: string;
}

const ANSWERS: Record<string, [Tone, string, string]> = {
  YES: ['good', 'Ship it', 'yes'],
  NO: ['bad', 'Do not ship it', 'no'],
  UNCLEAR: ['unsure', 'Not decided', 'unclear'],
};

function oneAnswer(verdicts: Verdict[]): Sentence {
  const [tone, headline] = ANSWERS[verdicts[0]!.answer] ?? ['calm', 'No verdict'];
  const reason = verdicts[0]!.text.replace(/^(yes|no|unclear): /, '');
  const places = new Set(verdicts.map((verdict) => verdict.device).filter((name) => name !== ''));
  const where = places.size > 1 ? ` on all ${places.size} devices` : '';
  return { tone, headline: `${headline}${where}`, reason };
}

/** The job in one sentence. */
export function sentenceOf(job: Job): Sentence {
  if (job.state === 'CANCELLED') {
    return { tone: 'calm', headline: 'Cancelled', reason: job.failure?.message ?? '' };
  }
  const verdicts = decided(job);
  if (verdicts.length === 0) {
    if (job.state === 'FAILED') {
      return { tone: 'bad', headline: 'Failed', reason: job.failure?.message ?? '' };
    }
    if (!hasEnded(job)) {
      const done = job.tasks.filter((task) => task.state === 'TASK_DONE').length;
      return {
        tone: 'busy',
        headline: job.state === 'QUEUED' ? 'Waiting' : 'Working',
        reason: `${done} of ${plural(job.tasks.length, 'task')} done`,
      };
    }
    return { tone: 'calm', headline: 'Done', reason: 'nothing was compared' };
  }
  const answers = new Set(verdicts.map((verdict) => verdict.answer));
  const sentence = answers.size === 1 ? oneAnswer(verdicts) : mixedAnswer(verdicts);
  if (job.state !== 'FAILED') return sentence;
  return { tone: 'bad', headline: 'Failed', reason: job.failure?.message || sentence.reason };
}

function mixedAnswer(verdicts: Verdict[]): Sentence {
  const parts = ['YES', 'NO', 'UNCLEAR']
    .map((answer) => {
      const those = verdicts.filter((verdict) => verdict.answer === answer);
      const places = those.map((verdict) => `${verdict.device || 'not measured'} (${plural(verdict.threads, 'thread')})`);
      return those.length === 0 ? '' : `${ANSWERS[answer]![2]} on ${places.join(', ')}`;
    })
    .filter((part) => part !== '');
  const yes = verdicts.some((verdict) => verdict.answer === 'YES');
  return { tone: 'unsure', headline: yes ? 'Ship it on some devices' : 'Not decided', reason: parts.join('; ') };
}

/** Why a task that waits is not worked on; "" when it does not wait. */
export function whyTaskWaits(task: Task, devices: Device[], farm: WhoAmI | undefined, now: number): string {
  if (task.state === 'BLOCKED') return 'waits for the optimized graph';
  if (task.state !== 'READY') return '';
  const notBefore = Date.parse(task.not_before);
  if (notBefore > now) {
    return `tried again in ${Math.ceil((notBefore - now) / 1000)} s${task.failure ? `: ${task.failure.message}` : ''}`;
  }
  if (task.kind === 'OPTIMIZE') {
    if (farm && farm.workers === 0) return 'no worker is connected';
    return 'waits for a free worker';
  }
  const device = devices.find((candidate) => candidate.info?.name === task.device);
  if (!device) return task.device.startsWith('any:') ? `no device with the tag ${task.device.slice(4)} is free` : '';
  const reason = device.state_reason || device.alert;
  if (device.state === 'AVAILABLE') return `${task.device} is about to take it`;
  return `${task.device} is ${words(device.state)}${reason ? `: ${reason}` : ''}`;
}

/** The same for a job: the first task that waits. */
export function whyJobWaits(job: Job, devices: Device[], farm: WhoAmI | undefined, now: number): string {
  if (hasEnded(job) || job.tasks.some((task) => task.state === 'LEASED')) return '';
  for (const task of job.tasks) {
    if (task.state === 'BLOCKED') continue;
    const why = whyTaskWaits(task, devices, farm, now);
    if (why) return why;
  }
  return '';
}

/** How much of the job is done, 0 to 1. */
export function progressOf(job: Job): number {
  if (job.tasks.length === 0) return hasEnded(job) ? 1 : 0;
  const sum = job.tasks.reduce((total, task) => {
    if (task.state === 'LEASED') return total + Math.min(1, task.progress);
    return total + (['TASK_DONE', 'TASK_FAILED', 'TASK_CANCELLED'].includes(task.state) ? 1 : 0);
  }, 0);
  return sum / job.tasks.length;
}

/** The commands that do the same again: as a job, and the graph alone. */
export function commandsOf(job: Job): { title: string; command: string }[] {
  const spec = job.spec;
  if (!spec) return [];
  const flags = [`--recipe=${quoted(spec.recipe_name || spec.recipe?.name || '')}`];
  const list = (name: string, values: readonly (string | number)[] | undefined) => {
    if (values && values.length > 0) flags.push(`--${name}=${quoted(values.join(','))}`);
  };
  list('inputs', spec.inputs.map((input) => input.name));
  list('outputs', spec.outputs);
  const samples = spec.calibration?.sources.find((source) => source.role === 'SAMPLES');
  if (samples) {
    flags.push('--calibration=FOLDER');
    const scale = samples as { mean?: number; std?: number };
    if (scale.mean !== undefined) flags.push(`--input_mean=${scale.mean}`);
    if (scale.std !== undefined) flags.push(`--input_std=${scale.std}`);
  }
  for (const device of spec.benchmark?.devices ?? []) flags.push(`--device=${quoted(device)}`);
  list('threads', spec.benchmark?.threads);
  for (const engine of spec.benchmark?.engines ?? []) flags.push(`--engine=${quoted(engine)}`);
  list('out_format', spec.out_formats.map((format) => format.toLowerCase()));
  for (const tag of spec.tags) flags.push(`--tag=${quoted(tag)}`);
  const model = quoted(spec.model?.name || 'model.pb');
  const commands = [{ title: 'As a job', command: `optctl submit ${model} ${flags.join(' ')} --wait` }];
  const report = job.report;
  if (report && report.transform_string !== '') {
    const inputs = report.inputs.map((input) => input.name).join(',');
    const outputs = report.outputs.map((output) => output.name).join(',');
    commands.push({
      title: 'The graph alone, with the same ranges',
      command: `optctl graph transform --in_graph=${model} --out_graph=optimized.pb --inputs=${quoted(inputs)} ` +
        `--outputs=${quoted(outputs)} --transforms=${quoted(report.transform_string)}`,
    });
  }
  return commands;
}
