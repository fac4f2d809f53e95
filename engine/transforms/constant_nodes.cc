#include "engine/transforms/constant_nodes.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::transforms {

using runtime::Tensor;

absl::StatusOr<Tensor> ConstValue(const graph::Node& node) {
  if (node.FindAttr("dtype") == nullptr || node.FindAttr("value") == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "No '", node.FindAttr("dtype") == nullptr ? "dtype" : "value",
        "' attribute for Const node '", node.name(), "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                           graph::GetType(node.def(), "dtype"));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(node.def(), "value"));
  absl::StatusOr<Tensor> value = Tensor::FromProto(*proto);
  if (!value.ok()) {
    return Annotate(
        value.status(),
        absl::StrCat("decoding the tensor of node '", node.name(), "'"));
  }
  if (value->dtype() != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("Const node '", node.name(), "' declares dtype ",
                     graph::DataTypeName(dtype), " but holds a tensor of ",
                     graph::DataTypeName(value->dtype())));
  }
  return value;
}

absl::StatusOr<Tensor> FloatConstValue(const graph::Node& node) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor value, ConstValue(node));
  if (value.dtype() != tensorflow::DT_FLOAT) {
    return absl::InvalidArgumentError(
        absl::StrCat("Const node '", node.name(), "' is ",
                     graph::DataTypeName(value.dtype()), ", not float"));
  }
  return value;
}

tensorflow::NodeDef MakeConst(absl::string_view name, const Tensor& value) {
  tensorflow::NodeDef def;
  def.set_name(std::string(name));
  def.set_op("Const");
  graph::SetType(&def, "dtype", value.dtype());
  *(*def.mutable_attr())["value"].mutable_tensor() = value.ToProto();
  return def;
}

tensorflow::NodeDef MakeScalarConst(absl::string_view name, float value) {
  return MakeConst(name, Tensor::Scalar<float>(value));
}

tensorflow::NodeDef MakeVectorConst(absl::string_view name,
                                    std::initializer_list<int32_t> values) {
  return MakeConst(
      name, Tensor::FromValues<int32_t>({static_cast<int64_t>(values.size())},
                                        {values.begin(), values.size()}));
}

tensorflow::NodeDef MakeReadableConst(absl::string_view name,
                                      const Tensor& value) {
  tensorflow::NodeDef def = MakeConst(name, value);
  if (value.num_elements() != 1) return def;
  tensorflow::TensorProto proto;
  switch (value.dtype()) {
    case tensorflow::DT_FLOAT:
      proto.add_float_val(value.flat<float>()[0]);
      break;
    case tensorflow::DT_INT32:
      proto.add_int_val(value.flat<int32_t>()[0]);
      break;
    case tensorflow::DT_INT64:
      proto.add_int64_val(value.flat<int64_t>()[0]);
      break;
    case tensorflow::DT_BOOL:
      proto.add_bool_val(*value.data<bool>());
      break;
    default:
      return def;
  }
  tensorflow::TensorProto* written =
      (*def.mutable_attr())["value"].mutable_tensor();
  written->clear_tensor_content();
  written->MergeFrom(proto);
  return def;
}

void SetConstValue(graph::Node* node, const Tensor& value) {
  tensorflow::NodeDef fresh = MakeConst(node->name(), value);
  node->mutable_def()->mutable_attr()->swap(*fresh.mutable_attr());
}

}  // namespace optfarm::transforms
