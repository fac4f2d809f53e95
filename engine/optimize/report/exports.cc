#include "engine/optimize/report/exports.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/export/export_optimized.h"
#include "engine/optimize/samples/normalization.h"

namespace optfarm::optimize {
namespace {

constexpr char kGate[] = "out_formats";
// Reasons that a sentence lists; the report has all.
constexpr size_t kMostShown = 5;
// A share of the magnitude above which a file does not say the same as the
// graph.
constexpr double kLargeDifference = 0.1;

absl::Status Write(const graph::Graph& graph, v1::ModelFormat format,
                   const std::string& folder,
                   const formats::TfliteMetadata& metadata,
                   v1::Report* report) {
  v1::ExportedModel& made = *report->add_exports();
  made.set_format(format);
  const std::string name = exporting::OptimizedName(format);
  exporting::ConvertOptions options =
      exporting::OptionsFor(*report, exporting::ToFileFormat(format));
  options.written.metadata = metadata;
  absl::StatusOr<exporting::ConvertedModel> model =
      exporting::ConvertGraph(graph, options);
  if (!model.ok()) {
    if (exporting::FindsRangesInRuns(graph)) {
      made.add_problems(
          "8-bit layers find their ranges in each run, because nothing was "
          "calibrated, and the format has no ops for that; give "
          "--calibration");
    }
    for (std::string& text : exporting::DescribeReasons(model.status())) {
      made.add_problems(std::move(text));
    }
    return absl::OkStatus();
  }
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, name), model->bytes));
  made.set_artifact(name);
  made.set_size_bytes(static_cast<int64_t>(model->bytes.size()));
  made.set_summary(std::move(model->line));
  if (!model->difference.has_value()) return absl::OkStatus();
  const exporting::ExportDifference& difference = *model->difference;
  const double relative =
      difference.largest > 0 ? difference.largest / difference.magnitude : 0;
  made.set_relative_difference(relative);
  if (difference.IsLarge(kLargeDifference)) {
    report->add_warnings(absl::StrCat(
        name,
        " was read back, and on random inputs its answers are far from "
        "the graph's: ",
        made.summary()));
  }
  return absl::OkStatus();
}

// The formats that cannot be had, and why.
std::string DescribeMissing(const v1::Report& report) {
  std::vector<std::string> names, reasons;
  for (const v1::ExportedModel& made : report.exports()) {
    if (!made.artifact().empty()) continue;
    names.emplace_back(
        exporting::FormatName(exporting::ToFileFormat(made.format())));
    reasons.insert(reasons.end(), made.problems().begin(),
                   made.problems().end());
  }
  if (names.empty()) return "";
  const size_t shown = std::min(reasons.size(), kMostShown);
  std::string text = absl::StrCat(
      "the result cannot be written as ", absl::StrJoin(names, " or "), ": ",
      absl::StrJoin(reasons.begin(), reasons.begin() + shown, "; "));
  if (shown < reasons.size()) {
    absl::StrAppend(&text, "; and ", reasons.size() - shown,
                    " more reasons, which the report's exports list");
  }
  return text;
}

}  // namespace

absl::Status WriteExports(const graph::Graph& graph,
                          const std::vector<v1::ModelFormat>& formats,
                          const std::string& folder,
                          const formats::TfliteMetadata& metadata,
                          v1::Report* report) {
  bool has_any = formats.empty();
  for (const v1::ModelFormat format :
       absl::btree_set<v1::ModelFormat>(formats.begin(), formats.end())) {
    if (exporting::OptimizedName(format).empty()) {
      return absl::UnimplementedError(absl::StrCat(
          "The job asks for its result in format ", static_cast<int>(format),
          ", which this program does not know; upgrade the worker"));
    }
    if (format == v1::PB) {
      has_any = true;
      continue;
    }
    OPTFARM_RETURN_IF_ERROR(Write(graph, format, folder, metadata, report));
    has_any |= !report->exports().rbegin()->artifact().empty();
  }
  std::string missing = DescribeMissing(*report);
  if (missing.empty()) return absl::OkStatus();
  if (has_any) {
    report->add_warnings(absl::StrCat("One format less: ", missing, "."));
    return absl::OkStatus();
  }
  v1::GateResult& gate = *report->add_gates();
  gate.set_name(kGate);
  gate.set_bound(1);
  gate.set_message(absl::StrCat(
      missing,
      "; ask for pb too to have what can be written, without failing"));
  report->set_passed(false);
  return absl::OkStatus();
}

bool CanBeWritten(const graph::Graph& graph,
                  const std::vector<v1::ModelFormat>& formats,
                  const v1::Report& report) {
  return std::all_of(formats.begin(), formats.end(), [&](auto format) {
    if (format == v1::PB) return true;
    exporting::ConvertOptions options =
        exporting::OptionsFor(report, exporting::ToFileFormat(format));
    options.compare = false;
    return exporting::ConvertGraph(graph, options).ok();
  });
}

formats::TfliteMetadata MetadataOf(const v1::Preprocessing& preprocessing,
                                   const LocalData& data,
                                   const v1::Report& report) {
  formats::TfliteMetadata metadata;
  const int folder = data.Find(v1::DataSource::SAMPLES);
  const int pictures = folder >= 0 ? folder : data.Find(v1::DataSource::INPUT);
  if (pictures >= 0 && report.inputs_size() > 0 &&
      report.inputs(0).shape_size() == 4) {
    const Normalization normalization =
        NormalizationOf(preprocessing, data.dataset.sources(pictures));
    const size_t count =
        std::max(normalization.mean.size(), normalization.std.size());
    for (size_t i = 0; i < count && !normalization.is_default; ++i) {
      const auto at = [&](const std::vector<double>& values) {
        return static_cast<float>(values[std::min(i, values.size() - 1)]);
      };
      metadata.mean.push_back(at(normalization.mean));
      metadata.std.push_back(at(normalization.std));
    }
    metadata.is_gray = report.inputs(0).shape(3) == 1;
  }
  const int labels = data.Find(v1::DataSource::LABELS);
  if (labels < 0 || report.outputs_size() == 0 ||
      report.outputs(0).shape_size() == 0) {
    return metadata;
  }
  // Other forms of labels have no names.
  const absl::StatusOr<std::string> text = ReadFile(data.PathOf(labels));
  if (!text.ok()) return metadata;
  std::vector<std::string> names = formats::ParseClassNames(*text);
  const int64_t classes = *report.outputs(0).shape().rbegin();
  if (static_cast<int64_t>(names.size()) == classes) {
    metadata.labels = std::move(names);
  }
  return metadata;
}

}  // namespace optfarm::optimize
