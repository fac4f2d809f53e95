// What a job was made of and what it left: inputs, transforms, warnings, files.

import { blobAddress } from '../lib/api';
import { bytes, decibels, digits, micros, num, plural, share, span } from '../lib/format';
import type { Job, Report, TensorSpec } from '../lib/types';
import { Table } from './table';
import { Card, Empty } from './ui';

function shapeText(tensor: TensorSpec): string {
  if (!tensor.shape_known) return 'any shape';
  if (tensor.shape.length === 0) return 'scalar';
  return tensor.shape.map((size) => (num(size) < 0 ? '?' : String(size))).join('×');
}

export function WarningsCard({ report, job }: { report: Report; job: Job }) {
  const noisy = job.measurements.filter((one) => one.noisy);
  const warnings = [
    ...report.warnings,
    ...noisy.map((one) => `Noisy: ${one.variant} on ${one.device}, ${plural(one.threads, 'thread')}. ${one.noise_reasons.map((reason) => `${reason.replace(/\.$/, '')}.`).join(' ')}`),
  ];
  return (
    <Card title="Warnings" note={warnings.length === 0 ? 'none' : undefined}>
      {warnings.length === 0 ? <p class="muted">Nothing to look at before you ship.</p> : (
        <ul class="warnings">{warnings.map((warning) => <li key={warning} class="break">{warning}</li>)}</ul>
      )}
    </Card>
  );
}

function Tensors({ title, tensors, fed }: { title: string; tensors: readonly TensorSpec[]; fed?: readonly string[] }) {
  return (
    <div>
      <h3>{title}</h3>
      {tensors.map((tensor, index) => (
        <div key={tensor.name} style={{ margin: '4px 0 8px' }}>
          <span class="mono break">{tensor.name}</span>{' '}
          <span class="muted small">{tensor.dtype} {shapeText(tensor)}</span>
          {fed?.[index] && <div class="small muted">{fed[index]}</div>}
        </div>
      ))}
    </div>
  );
}

function Comparisons({ report }: { report: Report }) {
  if (report.outputs_compared.length === 0) return null;
  return (
    <div>
      <h3>Original against result</h3>
      {report.outputs_compared.map((output) => (
        <div key={output.name} class="small" style={{ margin: '4px 0 8px' }}>
          <span class="mono break">{output.name}</span>: {decibels(num(output.snr_db))} signal to noise,
          largest error {digits(num(output.max_abs_error))} of {digits(num(output.max_abs_value))}
          {num(output.top1_agreement) >= 0 && <>, same best class in {share(num(output.top1_agreement))}</>}
          {' '}<span class="muted">({plural(num(output.samples), 'sample')})</span>
        </div>
      ))}
    </div>
  );
}

export function FromCard({ job, report }: { job: Job; report: Report }) {
  const before = report.size_before;
  const after = report.size_after;
  const steps = report.transforms.filter((step) => step.changed);
  return (
    <>
      <Card title="What the model is fed and answers" note={job.spec?.model?.digest && `SHA-256 ${job.spec.model.digest.sha256.slice(0, 16)}…`}>
        <div class="grid two" style={{ marginBottom: 0 }}>
          <Tensors title="Inputs" tensors={report.inputs} fed={report.fed} />
          <Tensors title="Outputs" tensors={report.outputs} />
          <Comparisons report={report} />
          {before && after && (
            <div>
              <h3>Graph</h3>
              <div class="small" style={{ margin: '4px 0' }}>
                {plural(num(before.nodes), 'node')} → {num(after.nodes).toLocaleString('en')},{' '}
                {bytes(num(before.file_bytes))} → {bytes(num(after.file_bytes))}
                {num(after.gzip_bytes) > 0 && <> ({bytes(num(after.gzip_bytes))} packed by gzip)</>}
              </div>
              {report.calibration && (
                <div class="small muted">
                  Calibrated: {report.calibration.method}, {plural(num(report.calibration.ranges), 'range')}
                  {num(report.calibration.skipped_count) > 0 && `, ${plural(num(report.calibration.skipped_count), 'sample')} skipped`}
                </div>
              )}
            </div>
          )}
        </div>
      </Card>
      {steps.length > 0 && (
        <Card title="Transforms" note={`${steps.length} of ${report.transforms.length} changed the graph, ${span(report.seconds)} in all`} flush>
          <Table label="Transforms" rows={steps.map((step, index) => ({ step, index }))} id={(row) => String(row.index)} columns={[
            { title: 'Step', show: ({ step }) => (
              <>
                <span class="mono">{step.name}</span>
                {step.warnings.map((warning) => <div class="small muted" key={warning}>{warning}</div>)}
                {step.ignored_error && <div class="small">Left out: {step.ignored_error}</div>}
              </>
            ) },
            { title: 'Changed', wide: true, show: ({ step }) => (
              <span class="small cell-long">
                {step.op_changes.slice(0, 3).map((change) => `${num(change.nodes)} ${change.from || '(new)'} → ${change.to || 'gone'}`).join(', ')}
                {step.op_changes.length > 3 && `, ${step.op_changes.length - 3} more`}
              </span>
            ) },
            { title: 'Matches', number: true, show: ({ step }) => num(step.matches).toLocaleString('en'), key: ({ step }) => num(step.matches) },
            { title: 'Nodes', number: true, show: ({ step }) => `${num(step.nodes_before)} → ${num(step.nodes_after)}` },
            { title: 'Constants', number: true, wide: true, show: ({ step }) => `${bytes(num(step.const_bytes_before))} → ${bytes(num(step.const_bytes_after))}` },
            { title: 'Time', number: true, show: ({ step }) => micros(step.seconds * 1e6), key: ({ step }) => step.seconds },
          ]} />
        </Card>
      )}
    </>
  );
}

export function FilesCard({ job }: { job: Job }) {
  if (job.artifacts.length === 0) {
    return <Empty icon="models" title="No files">The job has left nothing to download.</Empty>;
  }
  return (
    <Card title="Files" note="Named by SHA-256; the same bytes have the same name" flush>
      <Table label="Files" rows={job.artifacts} id={(file) => file.name} columns={[
        { title: 'Name', key: (file) => file.name, show: (file) => (
          <a download={file.name} href={blobAddress(file.digest?.sha256 ?? '')}>{file.name}</a>
        ) },
        { title: 'Size', number: true, key: (file) => num(file.digest?.size_bytes), show: (file) => bytes(num(file.digest?.size_bytes)) },
        { title: 'Type', wide: true, show: (file) => <span class="muted">{file.media_type}</span> },
        { title: 'SHA-256', wide: true, show: (file) => <span class="mono muted">{file.digest?.sha256.slice(0, 16)}…</span> },
      ]} />
    </Card>
  );
}
