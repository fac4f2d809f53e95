// What a tune is asked for: the best of what, within which bound, and for how
// long.

import type { Request } from '../lib/types';
import { Card } from './ui';

type Bound = 'usual' | 'TOP1_CHANGE' | 'AGREEMENT' | 'SNR';

export interface Goal {
  objective: 'LATENCY' | 'SIZE';
  bound: Bound;
  value: string;
  /** UNITS: minutes; empty: none. */
  budget: string;
  maxMeasured: string;
  oneForAll: boolean;
  fresh: boolean;
}

export function newGoal(): Goal {
  return { objective: 'LATENCY', bound: 'usual', value: '', budget: '30', maxMeasured: '16', oneForAll: false, fresh: false };
}

const BOUNDS: readonly { value: Bound; label: string; unit: string; usual: string; least: number; most: number }[] = [
  { value: 'usual', label: 'As usual', unit: 'half a point of top-1 with labels; else 98 % of the answers the same', usual: '', least: 0, most: 0 },
  { value: 'TOP1_CHANGE', label: 'Change of top-1', unit: 'points; −0.5 allows half a point less', usual: '-0.5', least: -100, most: 100 },
  { value: 'AGREEMENT', label: 'Same answers', unit: 'percent of the samples', usual: '98', least: 0, most: 100 },
  { value: 'SNR', label: 'Signal to noise', unit: 'decibels of the worst output', usual: '20', least: -200, most: 1000 },
];

/** `job`: what all its jobs share, without what a tune chooses for each. */
export function tuneSpecOf(job: Request<'JobSpec'>, devices: string[], threads: number, goal: Goal): Request<'TuneSpec'> {
  const { name: _name, recipe_name: _recipe, benchmark: _benchmark, no_cache: _cache, out_formats: _formats, ...shared } = job;
  const spec: Request<'TuneSpec'> = {
    job: shared, devices, threads, objective: goal.objective, max_measured: Number(goal.maxMeasured) || 0,
    one_for_all: goal.oneForAll, fresh: goal.fresh,
  };
  if (goal.bound !== 'usual') {
    spec.measure = goal.bound;
    spec.bound = Number(goal.value);
  }
  if (goal.budget.trim() !== '') spec.budget = `${Math.round(60 * Number(goal.budget))}s`;
  return spec;
}

export function GoalCard({ goal, set, devices }: { goal: Goal; set: (changes: Partial<Goal>) => void; devices: number }) {
  const bound = BOUNDS.find((one) => one.value === goal.bound)!;
  return (
    <Card title="Goal" note="Every candidate is an ordinary job that stays">
      <div class="choices" role="radiogroup" aria-label="Goal">
        {([['LATENCY', 'Fastest', 'The least latency that keeps the bound.'], ['SIZE', 'Smallest', 'The smallest file that keeps the bound.']] as const)
          .map(([value, title, what]) => (
            <label class="choice" key={value}>
              <input type="radio" name="objective" checked={goal.objective === value} onChange={() => set({ objective: value })} />
              <span class="lines"><span class="cell-main">{title}</span><span class="small muted">{what}</span></span>
            </label>
          ))}
      </div>
      <div class="row-fields">
        <label class="field">Bound on
          <select value={goal.bound} onChange={(event) => {
            const next = BOUNDS.find((one) => one.value === event.currentTarget.value)!;
            set({ bound: next.value, value: next.usual });
          }}>
            {BOUNDS.map((one) => <option key={one.value} value={one.value}>{one.label}</option>)}
          </select>
          <span class="hint">{bound.unit}</span>
        </label>
        {goal.bound !== 'usual' && (
          <label class="field">At least
            <input required type="number" step="any" min={bound.least} max={bound.most} value={goal.value}
              onInput={(event) => set({ value: event.currentTarget.value })} />
          </label>
        )}
        <label class="field">Minutes
          <input type="number" step="any" min="0.1" value={goal.budget} placeholder="no limit" onInput={(event) => set({ budget: event.currentTarget.value })} />
          <span class="hint">then nothing new is begun; empty: no limit</span>
        </label>
        <label class="field">Variants to measure
          <input type="number" min="6" max="200" value={goal.maxMeasured} onInput={(event) => set({ maxMeasured: event.currentTarget.value })} />
          <span class="hint">at most; six recipes are among them</span>
        </label>
      </div>
      {devices > 1 && (
        <label class="check"><input type="checkbox" checked={goal.oneForAll} onChange={(event) => set({ oneForAll: event.currentTarget.checked })} />
          Also find the one variant that loses least over all devices</label>
      )}
      <label class="check"><input type="checkbox" checked={goal.fresh} onChange={(event) => set({ fresh: event.currentTarget.checked })} />
        Measure again what an earlier tune measured</label>
    </Card>
  );
}
