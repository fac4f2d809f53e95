#include "engine/optimize/report_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/attr.h"
#include "engine/optimize/calibration/calibration.h"
#include "engine/optimize/report/compressed_size.h"
#include "engine/optimize/report/layer_chart.h"
#include "engine/optimize/report/layer_histogram.h"
#include "google/protobuf/util/json_util.h"

namespace optfarm::optimize {
namespace {

constexpr int kMaxSkipped = 100;

void SetSize(int64_t file_bytes, int64_t nodes, int64_t const_bytes,
             v1::GraphSize* size) {
  size->set_file_bytes(file_bytes);
  size->set_nodes(nodes);
  size->set_const_bytes(const_bytes);
}

void FillCalibration(const OptimizerInput& job, const Attempt& attempt,
                     const SampleReader& reader, v1::Report* report) {
  const bool has_log =
      !attempt.observed.log.empty() || !attempt.observed.input_log.empty();
  if (!has_log && attempt.shifts.empty()) return;
  const v1::Calibration& calibration = job.recipe->calibration();
  v1::CalibrationSummary* summary = report->mutable_calibration();
  summary->set_samples(attempt.calibration_samples);
  summary->set_ranges(static_cast<int64_t>(attempt.observed.log.size() +
                                           attempt.observed.input_log.size()));
  std::vector<std::string> methods;
  if (has_log) {
    methods.push_back(DescribeMethod(calibration, attempt.calibration_samples));
  }
  if (!attempt.shifts.empty()) {
    methods.push_back("biases corrected to the original's means");
  }
  summary->set_method(absl::StrJoin(methods, "; "));
  summary->set_skipped_count(reader.bad_count());
  for (v1::SkippedMatch& bad : reader.Bad()) {
    *summary->add_skipped_samples() = std::move(bad);
  }
  for (const transforms::RangeLog* log :
       {&attempt.observed.log, &attempt.observed.input_log}) {
    for (const auto& [node, records] : *log) {
      const transforms::ObservedRange range = FrozenRange(calibration, records);
      v1::ObservedRange* observed = summary->add_observed();
      observed->set_node(node);
      observed->set_min(range.min);
      observed->set_max(range.max);
    }
  }
}

std::string JoinNames(absl::Span<const graph::TensorName> names) {
  return absl::StrJoin(names, ",",
                       [](std::string* out, const graph::TensorName& name) {
                         absl::StrAppend(out, graph::ToString(name));
                       });
}

// A text as one word of a shell command.
std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

absl::Status WriteArtifact(const std::string& folder, absl::string_view name,
                           absl::string_view media_type,
                           absl::string_view bytes, v1::Report* report) {
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, name), bytes));
  v1::Artifact* artifact = report->add_artifacts();
  artifact->set_name(std::string(name));
  artifact->set_media_type(std::string(media_type));
  artifact->mutable_digest()->set_sha256(Sha256Hex(bytes));
  artifact->mutable_digest()->set_size_bytes(
      static_cast<int64_t>(bytes.size()));
  return absl::OkStatus();
}

// Files of other formats are in the folder already.
absl::Status AddExports(const std::string& folder, v1::Report* report) {
  for (const v1::ExportedModel& made : report->exports()) {
    if (made.artifact().empty()) continue;
    v1::Artifact* artifact = report->add_artifacts();
    artifact->set_name(made.artifact());
    artifact->set_media_type("application/octet-stream");
    artifact->mutable_digest()->set_size_bytes(made.size_bytes());
    OPTFARM_ASSIGN_OR_RETURN(*artifact->mutable_digest()->mutable_sha256(),
                             Sha256OfFile(JoinPath(folder, made.artifact())));
  }
  return absl::OkStatus();
}

}  // namespace

v1::TransformStats DescribeStep(const transforms::TransformStats& stats,
                                const transforms::TransformStep& step,
                                int most_skipped) {
  v1::TransformStats out;
  out.set_name(step.name);
  out.set_step(stats.step);
  out.set_nodes_before(stats.nodes_before);
  out.set_nodes_after(stats.nodes_after);
  out.set_const_bytes_before(stats.constant_bytes_before);
  out.set_const_bytes_after(stats.constant_bytes_after);
  out.set_seconds(absl::ToDoubleSeconds(stats.duration));
  out.set_changed(stats.report.nodes_changed > 0 ||
                  stats.nodes_before != stats.nodes_after ||
                  stats.constant_bytes_before != stats.constant_bytes_after);
  out.set_matches(stats.report.nodes_changed);
  for (const transforms::OpChange& change : stats.op_changes) {
    v1::OpChange* op = out.add_op_changes();
    op->set_from(change.from);
    op->set_to(change.to);
    op->set_nodes(change.nodes);
  }
  out.set_skipped_count(static_cast<int64_t>(stats.report.skipped.size()));
  for (const transforms::SkippedMatch& skipped : stats.report.skipped) {
    if (out.skipped_size() == most_skipped) break;
    v1::SkippedMatch* match = out.add_skipped();
    match->set_node(skipped.node);
    match->set_reason(skipped.reason);
  }
  for (const std::string& text : stats.report.warnings) out.add_warnings(text);
  if (!stats.ignored_error.ok()) {
    out.set_ignored_error(std::string(stats.ignored_error.message()));
  }
  return out;
}

v1::TensorSpec ToSpec(const graph::GraphTensor& tensor) {
  v1::TensorSpec spec;
  spec.set_name(tensor.name);
  if (tensor.dtype != tensorflow::DT_INVALID) {
    spec.set_dtype(graph::DataTypeName(tensor.dtype));
  }
  spec.set_shape_known(tensor.shape.has_rank());
  for (int i = 0; spec.shape_known() && i < tensor.shape.rank(); ++i) {
    spec.add_shape(tensor.shape.dim(i));
  }
  return spec;
}

void FillReport(const OptimizerInput& job, const Attempt& attempt,
                const SampleReader& reader, v1::Report* report) {
  report->set_recipe_name(job.recipe->name());
  const auto& stats = attempt.pipeline.steps;
  for (size_t i = 0; i < stats.size() && i < attempt.steps.size(); ++i) {
    *report->add_transforms() =
        DescribeStep(stats[i], attempt.steps[i], kMaxSkipped);
  }
  FillCalibration(job, attempt, reader, report);
  if (attempt.facts.detections.has_value()) {
    *report->mutable_detections() = *attempt.facts.detections;
  }
  for (const v1::TensorComparison& output : attempt.facts.outputs) {
    *report->add_outputs_compared() = output;
  }
  if (attempt.facts.float_accuracy.has_value()) {
    *report->mutable_float_accuracy() = *attempt.facts.float_accuracy;
  }
  if (attempt.facts.optimized_accuracy.has_value()) {
    *report->mutable_optimized_accuracy() = *attempt.facts.optimized_accuracy;
  }
  if (attempt.paired.has_value()) {
    *report->mutable_paired_accuracy() = *attempt.paired;
    *report->mutable_paired_top5() = *attempt.paired_top5;
  }
  for (const v1::SampleComparison& sample : attempt.worst_samples) {
    *report->add_worst_samples() = sample;
  }
  if (!stats.empty()) {
    SetSize(attempt.facts.bytes_before, stats.front().nodes_before,
            stats.front().constant_bytes_before, report->mutable_size_before());
    SetSize(attempt.facts.bytes_after, stats.back().nodes_after,
            stats.back().constant_bytes_after, report->mutable_size_after());
  }
  report->set_transform_string(transforms::PrintTransforms(attempt.steps));
  for (const v1::GateResult& gate : attempt.gates) *report->add_gates() = gate;
  report->set_passed(AllPassed(attempt.gates));
  for (const std::string& op : attempt.spared.ops) report->add_kept_float(op);
  for (const std::string& node : attempt.spared.nodes) {
    report->add_kept_float(node);
  }
}

void AddLayers(absl::Span<const v1::TensorComparison> layers,
               v1::Report* report) {
  std::vector<v1::TensorComparison> compared;
  for (const v1::TensorComparison& layer : layers) {
    if (layer.samples() > 0) compared.push_back(layer);
  }
  std::stable_sort(
      compared.begin(), compared.end(),
      [](const auto& a, const auto& b) { return a.snr_db() < b.snr_db(); });
  for (v1::TensorComparison& layer : compared) {
    *report->add_layers_compared() = std::move(layer);
  }
}

absl::Status WriteArtifacts(const std::string& folder,
                            const OptimizerInput& job, const Attempt& attempt,
                            absl::Span<const v1::TensorComparison> layers,
                            v1::Report* report) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string graph,
                           formats::SerializeGraphDef(attempt.graph.ToDef()));
  OPTFARM_RETURN_IF_ERROR(WriteArtifact(folder, "optimized.pb",
                                        "application/x-tensorflow-graphdef",
                                        graph, report));
  *report->mutable_optimized_model() = report->artifacts(0).digest();
  if (report->size_before().gzip_bytes() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t packed, GzipSize(graph));
    report->mutable_size_after()->set_gzip_bytes(packed);
    OPTFARM_ASSIGN_OR_RETURN(const int64_t zstd, ZstdSize(graph));
    report->mutable_size_after()->set_zstd_bytes(zstd);
  }
  OPTFARM_RETURN_IF_ERROR(AddExports(folder, report));
  const std::string command = absl::StrCat(
      "optctl graph transform --in_graph=MODEL --out_graph=optimized.pb",
      " --inputs=", ShellWord(JoinNames(job.inputs)),
      " --outputs=", ShellWord(JoinNames(job.outputs)),
      " --transforms=", ShellWord(report->transform_string()), "\n");
  OPTFARM_RETURN_IF_ERROR(
      WriteArtifact(folder, "transforms.txt", "text/plain", command, report));
  for (const auto& [name, log] :
       {std::pair(kRangeLogFile, &attempt.observed.log),
        std::pair(kInputLogFile, &attempt.observed.input_log)}) {
    if (log->empty()) continue;
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(
        folder, name, "text/plain", transforms::PrintRangeLog(*log), report));
  }
  if (!attempt.factors.empty()) {
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(
        folder, kFactorFile, "text/plain",
        transforms::PrintConstantShifts(attempt.factors), report));
  }
  if (!attempt.rounding.empty()) {
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(
        folder, kRoundingFile, "text/plain",
        transforms::PrintConstantShifts(attempt.rounding), report));
  }
  if (!attempt.shifts.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        WriteArtifact(folder, kShiftFile, "text/plain",
                      transforms::PrintConstantShifts(attempt.shifts), report));
  }
  if (!layers.empty()) {
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(folder, "layers.svg", "image/svg+xml",
                                          DrawLayers(layers), report));
  }
  if (report->sensitivity_size() > 0) {
    const std::vector<v1::LayerSensitivity> alone(report->sensitivity().begin(),
                                                  report->sensitivity().end());
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(folder, "sensitivity.svg",
                                          "image/svg+xml",
                                          DrawSensitivity(alone), report));
  }
  if (report->histograms_size() > 0) {
    const std::vector<v1::LayerHistogram> histograms(
        report->histograms().begin(), report->histograms().end());
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(folder, "histograms.svg",
                                          "image/svg+xml",
                                          DrawHistograms(histograms), report));
  }
  const std::vector<transforms::RenamedNode> name_map =
      transforms::MakeNameMap(attempt.pipeline.steps, attempt.graph);
  if (!name_map.empty()) {
    OPTFARM_RETURN_IF_ERROR(WriteArtifact(
        folder, transforms::kNameMapFile, "text/tab-separated-values",
        transforms::PrintNameMap(name_map), report));
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(*report, &json, options);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("The report cannot be written: ", status.ToString()));
  }
  return WriteArtifact(folder, "report.json", "application/json", json, report);
}

}  // namespace optfarm::optimize
