#include "engine/transforms/machinery/transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/files.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::transforms {
namespace {

absl::StatusOr<bool> ParseBool(absl::string_view text) {
  // TensorFlow takes "True" for ignore_errors, and only there.
  if (absl::EqualsIgnoreCase(text, "true") || text == "1") return true;
  if (absl::EqualsIgnoreCase(text, "false") || text == "0") return false;
  return absl::InvalidArgumentError("expected true, false, 0 or 1");
}

absl::StatusOr<int64_t> ParseInt(absl::string_view text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::InvalidArgumentError("expected a whole number");
}

absl::StatusOr<float> ParseFloat(absl::string_view text) {
  float value = 0;
  if (absl::SimpleAtof(text, &value) && std::isfinite(value)) return value;
  return absl::InvalidArgumentError("expected a finite number");
}

absl::Status CheckValue(ParameterType type, absl::string_view text) {
  switch (type) {
    case ParameterType::kString:
      return absl::OkStatus();
    case ParameterType::kInt:
      return ParseInt(text).status();
    case ParameterType::kFloat:
      return ParseFloat(text).status();
    case ParameterType::kBool:
      return ParseBool(text).status();
    case ParameterType::kShape:
      return graph::PartialShape::Parse(text).status();
    case ParameterType::kType:
      return graph::ParseDataType(text).status();
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view ParameterTypeName(ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return "STRING";
    case ParameterType::kInt:
      return "INT";
    case ParameterType::kFloat:
      return "FLOAT";
    case ParameterType::kBool:
      return "BOOL";
    case ParameterType::kShape:
      return "SHAPE";
    case ParameterType::kType:
      return "TYPE";
  }
  return "";
}

absl::StatusOr<TransformArguments> TransformArguments::Parse(
    absl::Span<const ParameterDef> defs,
    absl::Span<const TransformParameter> given) {
  TransformArguments arguments;
  std::vector<std::string> names;
  for (const ParameterDef& def : defs) {
    names.push_back(def.name);
    // An empty text is a string, and the shape of a scalar.
    if (!def.default_value.empty() || def.type == ParameterType::kString ||
        def.type == ParameterType::kShape) {
      arguments.defaults_[def.name] = def.default_value;
    }
  }
  for (const TransformParameter& parameter : given) {
    const auto def = std::find_if(
        defs.begin(), defs.end(),
        [&](const ParameterDef& d) { return d.name == parameter.key; });
    if (def == defs.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no parameter '", parameter.key, "'",
                       NearestNamesHint(parameter.key, names)));
    }
    if (absl::Status valid = CheckValue(def->type, parameter.value);
        !valid.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", parameter.key, "' has the value '",
                       parameter.value, "': ", valid.message()));
    }
    std::vector<std::string>& values = arguments.given_[parameter.key];
    values.push_back(parameter.value);
    if (!def->repeated && values.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", parameter.key,
                       "' may be given once, but is given several times"));
    }
  }
  for (const ParameterDef& def : defs) {
    if (def.required && !arguments.Has(def.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", def.name, "' is missing: ", def.help));
    }
  }
  return arguments;
}

bool TransformArguments::Has(absl::string_view name) const {
  return given_.find(name) != given_.end();
}

const std::string& TransformArguments::Only(absl::string_view name) const {
  if (const auto it = given_.find(name); it != given_.end()) {
    return it->second.front();
  }
  const auto it = defaults_.find(name);
  OPTFARM_CHECK(it != defaults_.end());
  return it->second;
}

std::string TransformArguments::String(absl::string_view name) const {
  return Only(name);
}

int64_t TransformArguments::Int(absl::string_view name) const {
  return ParseInt(Only(name)).value();
}

float TransformArguments::Float(absl::string_view name) const {
  return ParseFloat(Only(name)).value();
}

bool TransformArguments::Bool(absl::string_view name) const {
  return ParseBool(Only(name)).value();
}

graph::PartialShape TransformArguments::Shape(absl::string_view name) const {
  return graph::PartialShape::Parse(Only(name)).value();
}

tensorflow::DataType TransformArguments::Type(absl::string_view name) const {
  return graph::ParseDataType(Only(name)).value();
}

std::vector<std::string> TransformArguments::Strings(
    absl::string_view name) const {
  const auto it = given_.find(name);
  return it == given_.end() ? std::vector<std::string>() : it->second;
}

std::vector<graph::PartialShape> TransformArguments::Shapes(
    absl::string_view name) const {
  std::vector<graph::PartialShape> shapes;
  for (const std::string& text : Strings(name)) {
    shapes.push_back(graph::PartialShape::Parse(text).value());
  }
  return shapes;
}

std::vector<tensorflow::DataType> TransformArguments::Types(
    absl::string_view name) const {
  std::vector<tensorflow::DataType> types;
  for (const std::string& text : Strings(name)) {
    types.push_back(graph::ParseDataType(text).value());
  }
  return types;
}

bool TransformContext::IsInput(absl::string_view node) const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [&](const auto& name) { return name.node == node; });
}

bool TransformContext::IsOutput(absl::string_view node) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const auto& name) { return name.node == node; });
}

absl::StatusOr<std::string> TransformContext::ResolveFile(
    absl::string_view path) const {
  if (base_folder_.empty()) return std::string(path);
  bool leaves = absl::StartsWith(path, "/");
  for (absl::string_view piece : absl::StrSplit(path, '/')) {
    leaves = leaves || piece == "..";
  }
  if (leaves) {
    return absl::PermissionDeniedError(
        absl::StrCat("the file '", path,
                     "' is outside of the job's folder; give a path below it"));
  }
  return JoinPath(base_folder_, path);
}

absl::StatusOr<tensorflow::TensorProto> TransformContext::ReadVariable(
    absl::string_view checkpoint, const std::string& name) const {
  if (!checkpoint_reader_) {
    return absl::UnimplementedError(
        "checkpoints cannot be read here; freeze the graph first");
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string path, ResolveFile(checkpoint));
  return checkpoint_reader_(path, name);
}

void TransformContext::Skip(absl::string_view node, absl::string_view reason) {
  report_->skipped.push_back({std::string(node), std::string(reason)});
}

void TransformContext::Warn(absl::string_view text) {
  report_->warnings.emplace_back(text);
}

void TransformContext::RecordRename(absl::string_view before,
                                    absl::string_view after) {
  if (before == after) return;
  report_->renamed.push_back({std::string(before), std::string(after)});
}

}  // namespace optfarm::transforms
