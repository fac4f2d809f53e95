// Tensors to messages and back: ParseTensor, SerializeTensor.

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/text_function.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeParseTensor(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetType(node, "out_type"));
  // A dtype without elements is found here.
  OPTFARM_RETURN_IF_ERROR(Tensor::Allocate(dtype, Shape{0}).status());
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& serialized = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireText(serialized, "serialized"));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(serialized, "serialized"));
    tensorflow::TensorProto proto;
    if (!proto.ParseFromString(*serialized.data<std::string>())) {
      return absl::InvalidArgumentError(
          "'serialized' is no tensorflow.TensorProto");
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromProto(proto));
    OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, "serialized", dtype));
    context->SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSerializeTensor(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& tensor = context->input(0);
    if (tensor.is_handle()) {
      return absl::InvalidArgumentError("a handle cannot be serialized");
    }
    context->SetOutput(
        0, Tensor::Scalar<std::string>(tensor.ToProto().SerializeAsString()));
    return absl::OkStatus();
  });
}

}  // namespace

void AddSerializedTensorKernels(KernelCatalog* catalog) {
  catalog->Add("ParseTensor", MakeParseTensor);
  catalog->Add("SerializeTensor", MakeSerializeTensor);
}

}  // namespace optfarm::runtime
