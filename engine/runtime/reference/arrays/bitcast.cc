// Bitcast: the same bytes as elements of another type.

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// A narrower type adds a last dimension, a wider one takes it away.
absl::StatusOr<Shape> BitcastShape(const Tensor& input, size_t to) {
  const size_t from = ElementSize(input.dtype());
  std::vector<int64_t> dims(input.shape().dims().begin(),
                            input.shape().dims().end());
  if (to < from) dims.push_back(static_cast<int64_t>(from / to));
  if (to > from) {
    if (dims.empty() || dims.back() != static_cast<int64_t>(to / from)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the last dimension of a tensor of shape ", input.shape().ToString(),
          " must be ", to / from, " to become one element"));
    }
    dims.pop_back();
  }
  return Shape::FromDims(dims);
}

absl::Status RequireFixedSize(DataType dtype, absl::string_view name) {
  const bool is_known = dtype != tensorflow::DT_INVALID &&
                        dtype != tensorflow::DT_STRING &&
                        dtype != tensorflow::DT_BOOL && ElementSize(dtype) > 0;
  return is_known ? absl::OkStatus() : UnsupportedDtype(name, dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBitcast(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType type, graph::GetType(node, "type"));
  OPTFARM_RETURN_IF_ERROR(RequireFixedSize(type, "type"));
  OPTFARM_ASSIGN_OR_RETURN(const DataType from,
                           graph::GetTypeOr(node, "T", type));
  OPTFARM_RETURN_IF_ERROR(RequireFixedSize(from, "T"));
  return MakeKernel([type](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireFixedSize(input.dtype(), "input"));
    if (ElementSize(type) == ElementSize(input.dtype())) {
      context->SetOutput(0, input.Reinterpreted(type));
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             BitcastShape(input, ElementSize(type)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, type, shape));
    std::memcpy(out->raw(), input.raw(),
                static_cast<size_t>(input.TotalBytes()));
    return absl::OkStatus();
  });
}

}  // namespace

void AddBitcastKernels(KernelCatalog* catalog) {
  catalog->Add("Bitcast", MakeBitcast);
}

}  // namespace optfarm::runtime
