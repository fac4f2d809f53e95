#include "engine/export/export_optimized.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/export/runtime_support.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::exporting {
namespace {

// A graph of a million nodes may have as many reasons.
constexpr size_t kMostReasons = 1000;

}  // namespace

std::string OptimizedName(v1::ModelFormat format) {
  switch (format) {
    case v1::PB:
    case v1::ONNX:
    case v1::TFLITE:
      return absl::StrCat("optimized.", FormatName(ToFileFormat(format)));
    default:
      return "";
  }
}

ModelFormat ToFileFormat(v1::ModelFormat format) {
  if (format == v1::ONNX) return ModelFormat::kOnnx;
  return format == v1::TFLITE ? ModelFormat::kTflite : ModelFormat::kGraph;
}

ConvertOptions OptionsFor(const v1::Report& report, ModelFormat format) {
  ConvertOptions options;
  options.written.format = format;
  for (const v1::TensorSpec& spec : report.inputs()) {
    graph::InputRequest& input = options.io.inputs.emplace_back();
    input.name = spec.name();
    if (!spec.shape_known()) continue;
    input.shape = graph::PartialShape(
        std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
  }
  for (const v1::TensorSpec& spec : report.outputs()) {
    options.io.outputs.push_back(spec.name());
  }
  return options;
}

std::vector<std::string> DescribeReasons(const absl::Status& error) {
  const std::vector<inspect::Incompatibility> reasons =
      ReadReasons(error.message());
  if (reasons.empty()) return {std::string(error.message())};
  std::vector<std::string> texts;
  for (const inspect::Incompatibility& reason : reasons) {
    if (texts.size() == kMostReasons) {
      texts.push_back(
          absl::StrCat("and ", reasons.size() - kMostReasons, " others"));
      break;
    }
    texts.push_back(absl::StrCat(
        reason.op, ": ", reason.problem, " (",
        reason.nodes == 1 ? "node" : absl::StrCat(reason.nodes, " nodes, as"),
        " '", reason.example, "')"));
  }
  return texts;
}

absl::StatusOr<std::string> ExportOptimized(const std::string& optimized,
                                            const v1::Report& report,
                                            ModelFormat format,
                                            const std::string& to) {
  return ConvertFile(optimized, to, OptionsFor(report, format));
}

}  // namespace optfarm::exporting
