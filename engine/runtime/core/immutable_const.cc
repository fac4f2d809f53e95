#include "engine/runtime/core/immutable_const.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
#include "engine/runtime/core/packed_weights.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes. Smaller values are copied to where they are aligned at once.
constexpr int64_t kLeastMisaligned = 64 * 1024;

absl::StatusOr<Shape> ShapeOf(const tensorflow::NodeDef& node) {
  const tensorflow::AttrValue* attr = graph::FindAttr(node, "shape");
  if (attr == nullptr || !attr->has_shape()) {
    return absl::InvalidArgumentError("attribute 'shape' is missing");
  }
  OPTFARM_RETURN_IF_ERROR(graph::ElementCount(attr->shape()).status());
  std::vector<int64_t> dims;
  for (const auto& dim : attr->shape().dim()) dims.push_back(dim.size());
  return Shape::FromDims(dims);
}

absl::StatusOr<Tensor> Copy(DataType dtype, const Shape& shape,
                            absl::string_view bytes) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  if (dtype == tensorflow::DT_BOOL) {
    // A byte other than 0 or 1 is no valid bool to the compiler.
    auto* values = static_cast<uint8_t*>(tensor.raw());
    for (size_t i = 0; i < bytes.size(); ++i) values[i] = values[i] != 0;
  }
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> ReadImmutableConst(const tensorflow::NodeDef& node,
                                          const RegionFinder& find_region,
                                          absl::string_view* mapped_file) {
  if (mapped_file != nullptr) *mapped_file = {};
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, graph::GetType(node, "dtype"));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::string name,
                           graph::GetString(node, "memory_region_name"));
  const auto size = static_cast<int64_t>(ElementSize(dtype));
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a memory region cannot hold elements of type ",
                     graph::DataTypeName(dtype)));
  }
  if (!find_region) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its value is region '", name,
        "' of a memory-mapped package; load the package, not its graph alone"));
  }
  OPTFARM_ASSIGN_OR_RETURN(SharedBytes region, find_region(name));
  const auto available = static_cast<int64_t>(region.bytes.size());
  if (shape.num_elements() > available / size) {
    return absl::InvalidArgumentError(
        absl::StrCat("region '", name, "' has ", available, " bytes, a ",
                     graph::DataTypeName(dtype), " tensor of shape ",
                     shape.ToString(), " needs more"));
  }
  const absl::string_view bytes =
      region.bytes.substr(0, shape.num_elements() * size);
  Tensor view =
      Tensor::View(dtype, shape, bytes.data(), std::move(region.owner));
  const bool may_be_misaligned = mapped_file != nullptr &&
                                 !region.mapped_file.empty() &&
                                 view.TotalBytes() >= kLeastMisaligned;
  if (dtype == tensorflow::DT_BOOL ||
      (!IsAligned(view) && !may_be_misaligned)) {
    return Copy(dtype, shape, bytes);
  }
  if (mapped_file != nullptr) *mapped_file = region.mapped_file;
  return view;
}

}  // namespace optfarm::runtime
