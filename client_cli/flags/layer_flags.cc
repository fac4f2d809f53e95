#include "client_cli/flags/layer_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::client_cli {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  if (text.empty()) return {};
  return absl::StrSplit(text, separator);
}

absl::Status SetShape(const std::string& text, v1::TensorSpec* spec) {
  if (text.empty()) return absl::OkStatus();
  absl::StatusOr<graph::PartialShape> shape = graph::PartialShape::Parse(text);
  if (!shape.ok()) return Annotate(shape.status(), "--input_layer_shape");
  if (!shape->has_rank()) return absl::OkStatus();
  spec->set_shape_known(true);
  for (const int64_t dim : shape->dims()) spec->add_shape(dim);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::TensorSpec>> ParseLayerFlags(
    const std::string& names, const std::string& types,
    const std::string& shapes) {
  const std::vector<std::string> name_list = Split(names, ',');
  const std::vector<std::string> type_list = Split(types, ',');
  const std::vector<std::string> shape_list = Split(shapes, ':');
  if ((!type_list.empty() && type_list.size() != name_list.size()) ||
      (!shape_list.empty() && shape_list.size() != name_list.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--input_layer has ", name_list.size(), " names, --input_layer_type ",
        type_list.size(), " types and --input_layer_shape ", shape_list.size(),
        " shapes; give as many of each"));
  }
  std::vector<v1::TensorSpec> specs;
  for (size_t i = 0; i < name_list.size(); ++i) {
    v1::TensorSpec& spec = specs.emplace_back();
    const auto name = graph::ParseTensorName(name_list[i]);
    if (!name.ok()) return Annotate(name.status(), "--input_layer");
    spec.set_name(name_list[i]);
    if (!type_list.empty()) {
      const auto dtype = graph::ParseDataType(type_list[i]);
      if (!dtype.ok()) return Annotate(dtype.status(), "--input_layer_type");
      spec.set_dtype(graph::DataTypeName(*dtype));
    }
    if (!shape_list.empty()) {
      OPTFARM_RETURN_IF_ERROR(SetShape(shape_list[i], &spec));
    }
  }
  return specs;
}

}  // namespace optfarm::client_cli
