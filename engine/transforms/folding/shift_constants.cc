#include "engine/transforms/folding/shift_constants.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

constexpr uint64_t kMaxFileBytes = 256 << 20;
// Signed quantized values have as many steps down as up.
constexpr float kMostQuantized = 127;

absl::Status InLine(int number, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", number, ": ", problem));
}

// The sums of 8-bit values and whole numbers.
absl::Status ShiftQuantized(const std::vector<float>& shift, Tensor* value) {
  int8_t* const quantized = value->data<int8_t>();
  for (size_t i = 0; i < shift.size(); ++i) {
    const float sum = static_cast<float>(quantized[i]) + shift[i];
    if (shift[i] != std::round(shift[i]) || std::abs(sum) > kMostQuantized) {
      return absl::InvalidArgumentError(absl::StrCat(
          "quantized value ", quantized[i], " cannot be shifted by ", shift[i],
          "; the sum must be a whole number within -", kMostQuantized, " and ",
          kMostQuantized));
    }
    quantized[i] = static_cast<int8_t>(sum);
  }
  return absl::OkStatus();
}

// The constant's value, shifted.
absl::StatusOr<Tensor> Shifted(const Graph& graph, const std::string& name,
                               const std::vector<float>& shift) {
  OPTFARM_ASSIGN_OR_RETURN(const NodeId id, graph.Get(name));
  if (!IsConst(graph.node(id))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", name, "' is a ", graph.node(id).op(), ", not a Const"));
  }
  const tensorflow::DataType dtype =
      graph::GetTypeOr(graph.node(id).def(), "dtype", tensorflow::DT_INVALID)
          .value_or(tensorflow::DT_INVALID);
  OPTFARM_ASSIGN_OR_RETURN(Tensor value, dtype == tensorflow::DT_QINT8
                                             ? ConstValue(graph.node(id))
                                             : FloatConstValue(graph.node(id)));
  if (value.num_elements() != static_cast<int64_t>(shift.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("Const node '", name, "' has ", value.num_elements(),
                     " elements, ", shift.size(), " shifts are given"));
  }
  if (dtype == tensorflow::DT_QINT8) {
    OPTFARM_RETURN_IF_ERROR(Annotate(ShiftQuantized(shift, &value),
                                     absl::StrCat("Const node '", name, "'")));
    return value;
  }
  const absl::Span<float> elements = value.flat<float>();
  for (size_t i = 0; i < shift.size(); ++i) elements[i] += shift[i];
  return value;
}

absl::Status RunShiftConstants(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string path,
      context->ResolveFile(context->arguments().String("shift_file")));
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxFileBytes));
  absl::StatusOr<ConstantShifts> shifts = ParseConstantShifts(text);
  if (!shifts.ok()) {
    return Annotate(shifts.status(), absl::StrCat("'", path, "'"));
  }
  OPTFARM_RETURN_IF_ERROR(ShiftConstants(*shifts, graph));
  context->CountChange(static_cast<int64_t>(shifts->size()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConstantShifts> ParseConstantShifts(absl::string_view text) {
  ConstantShifts shifts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipWhitespace());
    if (words.empty()) continue;
    if (words.size() == 1) {
      return InLine(number, absl::StrCat("'", words[0], "' has no numbers"));
    }
    std::vector<float> values(words.size() - 1);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!absl::SimpleAtof(words[i + 1], &values[i]) ||
          !std::isfinite(values[i])) {
        return InLine(number, absl::StrCat("'", words[i + 1],
                                           "' is not a finite number"));
      }
    }
    if (!shifts.emplace(std::string(words[0]), std::move(values)).second) {
      return InLine(number, absl::StrCat("'", words[0], "' comes twice"));
    }
  }
  return shifts;
}

std::string PrintConstantShifts(const ConstantShifts& shifts) {
  std::string text;
  for (const auto& [name, values] : shifts) {
    absl::StrAppend(&text, name);
    for (float value : values) absl::StrAppendFormat(&text, " %.9g", value);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

absl::Status ShiftConstants(const ConstantShifts& shifts, Graph* graph) {
  std::vector<std::pair<NodeId, Tensor>> shifted;
  for (const auto& [name, shift] : shifts) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, Shifted(*graph, name, shift));
    shifted.emplace_back(graph->Find(name), std::move(value));
  }
  for (const auto& [id, value] : shifted) {
    SetConstValue(graph->mutable_node(id), value);
  }
  return absl::OkStatus();
}

TransformDef ShiftConstantsTransform() {
  return {.name = "shift_constants",
          .summary =
              "Adds values from a file to constants, for instance for bias "
              "correction and adaptive rounding.",
          .parameters = {{.name = "shift_file",
                          .help = "File with one line per constant: its name "
                                  "and a value for each element.",
                          .required = true}},
          .run = RunShiftConstants};
}

}  // namespace optfarm::transforms
