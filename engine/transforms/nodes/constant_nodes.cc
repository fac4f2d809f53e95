#include "engine/transforms/nodes/constant_nodes.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
#include "google/protobuf/io/coded_stream.h"

namespace optfarm::transforms {

using runtime::Tensor;

namespace {

// The value as the file has it, its dtype checked but not its length.
absl::StatusOr<const tensorflow::TensorProto*> ConstProto(
    const graph::Node& node) {
  if (node.FindAttr("dtype") == nullptr || node.FindAttr("value") == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "No '", node.FindAttr("dtype") == nullptr ? "dtype" : "value",
        "' attribute for Const node '", node.name(), "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                           graph::GetType(node.def(), "dtype"));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(node.def(), "value"));
  if (proto->dtype() != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("Const node '", node.name(), "' declares dtype ",
                     graph::DataTypeName(dtype), " but holds a tensor of ",
                     graph::DataTypeName(proto->dtype())));
  }
  return proto;
}

absl::Status Decoding(const absl::Status& status, const graph::Node& node) {
  return Annotate(
      status, absl::StrCat("decoding the tensor of node '", node.name(), "'"));
}

absl::Status CheckFloat(const tensorflow::TensorProto& proto,
                        const graph::Node& node) {
  if (proto.dtype() == tensorflow::DT_FLOAT) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Const node '", node.name(), "' is ",
                   graph::DataTypeName(proto.dtype()), ", not float"));
}

}  // namespace

absl::StatusOr<Tensor> ConstValue(const graph::Node& node) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           ConstProto(node));
  absl::StatusOr<Tensor> value = Tensor::FromProto(*proto);
  if (!value.ok()) return Decoding(value.status(), node);
  return value;
}

absl::StatusOr<Tensor> FloatConstValue(const graph::Node& node) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           ConstProto(node));
  OPTFARM_RETURN_IF_ERROR(CheckFloat(*proto, node));
  return ConstValue(node);
}

bool IsRawTensor(const tensorflow::TensorProto& tensor) {
  if (tensor.tensor_content().empty() ||
      graph::ElementBytes(tensor.dtype()) == 0 ||
      tensor.dtype() == tensorflow::DT_BOOL ||
      !graph::CheckTensorProto(tensor).ok()) {
    return false;
  }
  tensorflow::TensorProto header;
  header.set_dtype(tensor.dtype());
  *header.mutable_tensor_shape() = tensor.tensor_shape();
  const size_t others = tensor.ByteSizeLong() - header.ByteSizeLong();
  const size_t bytes = tensor.tensor_content().size();
  return others ==
         1 + google::protobuf::io::CodedOutputStream::VarintSize64(bytes) +
             bytes;
}

absl::StatusOr<FloatView> FloatView::Of(const graph::Node& node) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           ConstProto(node));
  OPTFARM_RETURN_IF_ERROR(CheckFloat(*proto, node));
  FloatView view;
  if (proto->tensor_content().empty()) {
    OPTFARM_ASSIGN_OR_RETURN(view.decoded_, ConstValue(node));
    view.shape_ = view.decoded_.shape();
    view.values_ = std::as_const(view.decoded_).flat<float>();
    return view;
  }
  if (absl::Status valid = graph::CheckTensorProto(*proto); !valid.ok()) {
    return Decoding(valid, node);
  }
  std::vector<int64_t> dims;
  for (const auto& dim : proto->tensor_shape().dim()) {
    dims.push_back(dim.size());
  }
  OPTFARM_ASSIGN_OR_RETURN(view.shape_, runtime::Shape::FromDims(dims));
  // A string's buffer is aligned for every type of number.
  view.values_ = {
      reinterpret_cast<const float*>(proto->tensor_content().data()),
      static_cast<size_t>(view.shape_.num_elements())};
  return view;
}

absl::Span<float> MutableFloats(graph::Node* node) {
  if (graph::FindAttr(node->def(), "value")
          ->tensor()
          .tensor_content()
          .empty()) {
    SetConstValue(node, ConstValue(*node).value());
  }
  auto* attributes = node->mutable_def()->mutable_attr();
  for (auto it = attributes->begin(); it != attributes->end();) {
    const bool is_kept = it->first == "dtype" || it->first == "value";
    it = is_kept ? std::next(it) : attributes->erase(it);
  }
  std::string* content =
      (*attributes)["value"].mutable_tensor()->mutable_tensor_content();
  return {reinterpret_cast<float*>(content->data()),
          content->size() / sizeof(float)};
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
