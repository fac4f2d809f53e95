#include "client_cli/tables/summary_text.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_cli/tables/json_text.h"
#include "engine/graph/attr.h"

namespace optfarm::client_cli {
namespace {

using inspect::GraphSummary;
using inspect::SummaryOutput;
using inspect::SummaryTensor;

std::string TypeText(const SummaryTensor& tensor) {
  return absl::StrCat(tensor.dtype == tensorflow::DT_INVALID
                          ? "INVALID"
                          : graph::DataTypeName(tensor.dtype),
                      "(", static_cast<int>(tensor.dtype), ")");
}

std::string DimsText(const std::vector<int64_t>& dims) {
  std::vector<std::string> texts;
  for (const int64_t dim : dims) {
    if (dim < -1) {
      return absl::StrCat("a dimension of ", dim, " is not allowed");
    }
    texts.push_back(dim == -1 ? "?" : absl::StrCat(dim));
  }
  return absl::StrCat("[", absl::StrJoin(texts, ","), "]");
}

std::string ShapeText(const SummaryTensor& tensor) {
  switch (tensor.shape_kind) {
    case SummaryTensor::ShapeKind::kNotGiven:
      return "None";
    case SummaryTensor::ShapeKind::kNotAShape:
      return "not a shape";
    case SummaryTensor::ShapeKind::kUnknownRank:
      return "<unknown>";
    case SummaryTensor::ShapeKind::kDims:
      break;
  }
  return DimsText(tensor.dims);
}

std::string TensorsText(const std::vector<SummaryTensor>& tensors,
                        absl::string_view none, absl::string_view kind) {
  if (tensors.empty()) return absl::StrCat("No ", none, " spotted.\n");
  std::string text = absl::StrCat("Found ", tensors.size(), " ", kind, ": ");
  for (const SummaryTensor& tensor : tensors) {
    absl::StrAppend(&text, "(name=", tensor.name_in_file,
                    ", type=", TypeText(tensor), ", shape=", ShapeText(tensor),
                    ") ");
  }
  return absl::StrCat(text, "\n");
}

std::string OutputsText(const std::vector<SummaryOutput>& outputs) {
  if (outputs.empty()) return "No outputs spotted.\n";
  std::string text =
      absl::StrCat("Found ", outputs.size(), " possible outputs: ");
  for (const SummaryOutput& output : outputs) {
    absl::StrAppend(&text, "(name=", output.name_in_file, ", op=", output.op,
                    ") ");
  }
  return absl::StrCat(text, "\n");
}

std::string CountsText(const GraphSummary& summary) {
  std::string text = absl::StrCat(
      "Found ", summary.const_parameters, " (",
      ShortCount(summary.const_parameters), ") const parameters, ",
      summary.variable_parameters, " (",
      ShortCount(summary.variable_parameters), ") variable parameters, and ",
      summary.control_edges, " control_edges\n");
  for (const auto& [device, count] : summary.devices) {
    absl::StrAppend(&text, count, " nodes assigned to device '", device, "'\n");
  }
  return text;
}

std::string OpsText(const GraphSummary& summary) {
  return absl::StrCat("Op types used: ",
                      absl::StrJoin(summary.ops, ", ",
                                    [](std::string* out, const auto& count) {
                                      absl::StrAppend(out, count.second, " ",
                                                      count.first);
                                    }),
                      "\n");
}

nlohmann::ordered_json TensorsJson(const std::vector<SummaryTensor>& tensors) {
  auto list = nlohmann::ordered_json::array();
  for (const SummaryTensor& tensor : tensors) {
    list.push_back({{"name", tensor.name_in_file},
                    {"type", graph::DataTypeName(tensor.dtype)},
                    {"shape", ShapeText(tensor)}});
  }
  return list;
}

}  // namespace

std::string BenchmarkLine(const GraphSummary& summary, const std::string& path,
                          absl::string_view benchmark) {
  std::vector<SummaryTensor> inputs = summary.inputs;
  inputs.insert(inputs.end(), summary.variables.begin(),
                summary.variables.end());
  const auto name = [](std::string* out, const auto& node) {
    out->append(node.name);
  };
  const auto type = [](std::string* out, const SummaryTensor& tensor) {
    out->append(graph::DataTypeName(tensor.dtype));
  };
  const auto shape = [](std::string* out, const SummaryTensor& tensor) {
    absl::StrAppend(out, absl::StrJoin(tensor.dims, ","));
  };
  return absl::StrCat(
      benchmark, " --graph=", path,
      " --show_flops --input_layer=", absl::StrJoin(inputs, ",", name),
      " --input_layer_type=", absl::StrJoin(inputs, ",", type),
      " --input_layer_shape=", absl::StrJoin(inputs, ":", shape),
      " --output_layer=", absl::StrJoin(summary.outputs, ",", name));
}

std::string SummaryText(const GraphSummary& summary,
                        absl::string_view benchmark_line) {
  std::string text =
      absl::StrCat(TensorsText(summary.inputs, "inputs", "possible inputs"),
                   TensorsText(summary.variables, "variables", "variables"),
                   OutputsText(summary.outputs), CountsText(summary));
  if (summary.invalid_inputs.empty()) {
    absl::StrAppend(&text, OpsText(summary),
                    "To measure it, try these arguments:\n", benchmark_line,
                    "\n");
  }
  return text;
}

std::string SummaryJson(const GraphSummary& summary,
                        const std::string& benchmark_line) {
  nlohmann::ordered_json json;
  json["inputs"] = TensorsJson(summary.inputs);
  json["variables"] = TensorsJson(summary.variables);
  json["outputs"] = nlohmann::ordered_json::array();
  for (const SummaryOutput& output : summary.outputs) {
    json["outputs"].push_back(
        {{"name", output.name_in_file}, {"op", output.op}});
  }
  json["const_parameters"] = summary.const_parameters;
  json["variable_parameters"] = summary.variable_parameters;
  json["control_edges"] = summary.control_edges;
  json["devices"] = nlohmann::ordered_json::object();
  for (const auto& [device, count] : summary.devices) {
    json["devices"][device] = count;
  }
  json["invalid_inputs"] = nlohmann::ordered_json::array();
  for (const inspect::InvalidInput& invalid : summary.invalid_inputs) {
    json["invalid_inputs"].push_back(InvalidInputText(invalid));
  }
  json["ops"] = nlohmann::ordered_json::array();
  for (const auto& [op, count] : summary.ops) {
    json["ops"].push_back({{"op", op}, {"count", count}});
  }
  json["benchmark"] = benchmark_line;
  return JsonText(json);
}

std::string InvalidInputText(const inspect::InvalidInput& invalid) {
  return absl::StrCat("Invalid input ", invalid.input, " for node ",
                      invalid.node);
}

std::string ShortCount(int64_t count) {
  if (count < 1000) return absl::StrCat(count);
  if (count >= 1'000'000'000'000'000) {
    return absl::StrFormat("%0.3G", static_cast<double>(count));
  }
  static constexpr char kUnits[] = "kMBT";
  const char* unit = kUnits;
  while (count >= 1'000'000) {
    count /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.2f%c", static_cast<double>(count) / 1000, *unit);
}

}  // namespace optfarm::client_cli
