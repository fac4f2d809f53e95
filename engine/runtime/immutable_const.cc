#include "engine/runtime/immutable_const.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes. What kernels may count on for every tensor.
constexpr uintptr_t kAlignment = 64;

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
                                          bool* is_mapped) {
  if (is_mapped != nullptr) *is_mapped = false;
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
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % kAlignment != 0 || dtype == tensorflow::DT_BOOL) {
    return Copy(dtype, shape, bytes);
  }
  if (is_mapped != nullptr) *is_mapped = region.is_mapped_file;
  return Tensor::View(dtype, shape, bytes.data(), std::move(region.owner));
}

}  // namespace optfarm::runtime
