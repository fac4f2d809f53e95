#include "engine/runtime/reference/text/example_features.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::runtime {
namespace {

absl::Status CheckType(const tensorflow::NodeDef& node, DataType dtype) {
  if (dtype == tensorflow::DT_FLOAT || dtype == tensorflow::DT_INT64 ||
      dtype == tensorflow::DT_STRING) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      node.op(), " has no kernel for features of ", graph::DataTypeName(dtype),
      ", only for float, int64 and string"));
}

absl::StatusOr<DenseFeature> ReadDense(
    const tensorflow::TensorShapeProto& proto, DataType dtype) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape partial,
                           graph::PartialShape::FromProto(proto));
  DenseFeature dense;
  dense.dtype = dtype;
  dense.has_any_length = partial.has_rank() && partial.rank() > 0 &&
                         partial.dim(0) == graph::kUnknownDim;
  const graph::PartialShape rest =
      dense.has_any_length ? partial.Slice(1) : partial;
  if (!rest.is_static()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dense shape ", partial.ToString(),
                     " is not known but for its first dimension"));
  }
  OPTFARM_ASSIGN_OR_RETURN(dense.shape, Shape::FromDims(rest.dims()));
  if (dense.has_any_length && dense.shape.num_elements() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dense shape ", partial.ToString(), " has no room for values"));
  }
  return dense;
}

}  // namespace

absl::StatusOr<ExampleFeatures> ReadExampleFeatures(
    const tensorflow::NodeDef& node) {
  ExampleFeatures features;
  OPTFARM_ASSIGN_OR_RETURN(features.sparse,
                           graph::GetTypes(node, "sparse_types"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           graph::GetTypes(node, "Tdense"));
  const auto shapes = node.attr().find("dense_shapes");
  const int count =
      shapes == node.attr().end() ? 0 : shapes->second.list().shape_size();
  if (count != static_cast<int>(types.size())) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", types.size(),
                                                   " dense features, but ",
                                                   count, " dense shapes"));
  }
  for (DataType dtype : features.sparse) {
    OPTFARM_RETURN_IF_ERROR(CheckType(node, dtype));
  }
  for (int i = 0; i < count; ++i) {
    OPTFARM_RETURN_IF_ERROR(CheckType(node, types[i]));
    OPTFARM_ASSIGN_OR_RETURN(
        DenseFeature dense,
        ReadDense(shapes->second.list().shape(i), types[i]));
    features.dense.push_back(std::move(dense));
  }
  return features;
}

}  // namespace optfarm::runtime
