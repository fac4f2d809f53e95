// The API's messages as they arrive: the server writes every plain field and
// every list, and leaves out messages that are not set.

import type { components } from './openapi';

type Plain = string | number | boolean;
type PlainKeys<T> = {
  [K in keyof T]-?: Exclude<T[K], undefined> extends Plain | readonly unknown[] ? K : never;
}[keyof T];

export type Whole<T> = T extends (infer U)[]
  ? Whole<U>[]
  : T extends object
    ? { [K in PlainKeys<T>]-?: Whole<Exclude<T[K], undefined>> } & {
        [K in Exclude<keyof T, PlainKeys<T>>]?: Whole<Exclude<T[K], undefined>>;
      }
    : T;

type Schemas = components['schemas'];
type Message<Name extends keyof Schemas> = Whole<Schemas[Name]>;

export type Job = Message<'Job'>;
export type JobSpec = Message<'JobSpec'>;
export type Task = Message<'Task'>;
export type JobState = Schemas['JobState'];
export type TaskState = Schemas['TaskState'];
export type Failure = Message<'Failure'>;
export type Report = Message<'Report'>;
export type Measurement = Message<'Measurement'>;
export type Verdict = Message<'ShippingVerdict'>;
export type GateResult = Message<'GateResult'>;
export type TensorSpec = Message<'TensorSpec'>;
export type Device = Message<'Device'>;
export type WhoAmI = Message<'WhoAmIResponse'>;
export type Token = Message<'Token'>;
export type AuditEntry = Message<'AuditEntry'>;
export type Project = Message<'Project'>;
export type StoreUsage = Message<'StoreUsage'>;
export type ProjectBlob = Message<'ProjectBlob'>;
export type BlobList = Message<'ListBlobsResponse'>;
export type BlobRemovals = Message<'RemoveBlobsResponse'>;
export type Participant = Message<'Participant'>;
export type DeviceStateChange = Message<'DeviceStateChange'>;
export type Series = Message<'Series'>;
export type SeriesPoint = Message<'SeriesPoint'>;
export type SeriesHistory = Message<'SeriesHistory'>;
export type Regression = Message<'Regression'>;
export type Comparison = Message<'CompareResultsResponse'>;
export type ComparisonRow = Comparison['rows'][number];
export type JobEvent = Message<'JobEvent'>;
export type Digest = Message<'Digest'>;
export type ExportedModel = Message<'ExportedModel'>;
export type Tune = Message<'Tune'>;
export type TunedDevice = Message<'TunedDevice'>;
export type TunedVariant = Message<'TunedVariant'>;
export type TuneMeasure = Schemas['TuneReport.Measure'];

/** What requests are made of: any field may be left out. */
export type Request<Name extends keyof Schemas> = Schemas[Name];

export const ENDED: readonly JobState[] = ['SUCCEEDED', 'FAILED', 'CANCELLED'];

/** Whether the job will never change again. */
export function hasEnded(job: { state: JobState }): boolean {
  return ENDED.includes(job.state);
}
