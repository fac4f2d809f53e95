#include "engine/formats/tflite/lowering.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/tensor_proto.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// A DEQUANTIZE behind a DENSIFY behind the constant, and one more.
constexpr int kMostStepsToConstant = 3;

absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view()
                         : absl::string_view(text->c_str(), text->size());
}

// All other operators have one of each at least, which lowerings rely on.
constexpr BuiltinOperator kWithoutInputs[] = {
    BuiltinOperator::CALL, BuiltinOperator::CALL_ONCE,
    BuiltinOperator::STABLEHLO_COMPOSITE, BuiltinOperator::VAR_HANDLE,
    BuiltinOperator::WHILE};
constexpr BuiltinOperator kWithoutOutputs[] = {
    BuiltinOperator::ASSIGN_VARIABLE, BuiltinOperator::CALL,
    BuiltinOperator::CALL_ONCE,       BuiltinOperator::IF,
    BuiltinOperator::WHILE,           BuiltinOperator::STABLEHLO_COMPOSITE};

bool MayLack(BuiltinOperator code, absl::Span<const BuiltinOperator> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

template <typename T>
Constant VectorOf(tensorflow::DataType type, absl::Span<const T> values) {
  Constant constant;
  constant.type = type;
  constant.shape = {static_cast<int64_t>(values.size())};
  constant.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(T));
  return constant;
}

// Integers as a vector of `type`.
absl::StatusOr<Constant> IntegersAs(tensorflow::DataType type,
                                    absl::Span<const int64_t> values) {
  const auto convert = [&](auto zero) -> absl::StatusOr<Constant> {
    using T = decltype(zero);
    std::vector<T> narrow;
    for (const int64_t value : values) {
      narrow.push_back(static_cast<T>(value));
      if (narrow.back() != value) {
        return absl::InvalidArgumentError(
            absl::StrCat("zero point ", value, " does not fit its type"));
      }
    }
    return VectorOf<T>(type, narrow);
  };
  switch (type) {
    case tensorflow::DT_INT8:
      return convert(int8_t{});
    case tensorflow::DT_UINT8:
      return convert(uint8_t{});
    case tensorflow::DT_INT16:
      return convert(int16_t{});
    default:
      return convert(int32_t{});
  }
}

}  // namespace

absl::Status Unsupported(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not supported"));
}

SubgraphLowering::SubgraphLowering(ModelLowering* model, int subgraph,
                                   NodeMaker* maker,
                                   std::map<std::string, Variable>* variables)
    : model_(*model),
      index_(subgraph),
      subgraph_(model->file.subgraph(subgraph)),
      maker_(*maker),
      variables_(variables) {
  if (subgraph_.operators() == nullptr) return;
  for (const Operator* op : *subgraph_.operators()) {
    if (op->outputs() == nullptr) continue;
    for (const int output : *op->outputs()) maker_of_[output] = op;
  }
}

const Tensor& SubgraphLowering::tensor(int index) const {
  return *subgraph_.tensors()->Get(index);
}

std::string SubgraphLowering::NameOf(int index) const {
  const absl::string_view name = TextOf(tensor(index).name());
  return name.empty() ? absl::StrCat("tensor_", index)
                      : graph::NodeNameOf(name);
}

bool SubgraphLowering::IsConstant(int index) const {
  const Tensor& t = tensor(index);
  if (maker_of_.contains(index) || t.is_variable()) return false;
  if (!model_.file.DataOf(t).empty()) return true;
  const std::vector<int64_t> shape = ShapeOf(t);
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

absl::StatusOr<Constant> SubgraphLowering::ConstantOf(int index) const {
  const Tensor& t = tensor(index);
  absl::StatusOr<Constant> constant =
      ReadConstant(t, model_.file.DataOf(t),
                   std::max<int64_t>(model_.budget.constant_bytes, 0));
  if (constant.ok()) return constant;
  return absl::Status(constant.status().code(),
                      absl::StrCat(Describe(subgraph_, index), ": ",
                                   constant.status().message()));
}

int SubgraphLowering::ConstantSource(int index) const {
  for (int step = 0; step <= kMostStepsToConstant; ++step) {
    if (IsConstant(index)) return index;
    const auto it = maker_of_.find(index);
    if (it == maker_of_.end()) return -1;
    const BuiltinOperator code = model_.file.KindOf(*it->second).code;
    const auto* inputs = it->second->inputs();
    if ((code != BuiltinOperator::DEQUANTIZE &&
         code != BuiltinOperator::DENSIFY) ||
        inputs == nullptr || inputs->size() != 1 || inputs->Get(0) < 0) {
      return -1;
    }
    index = inputs->Get(0);
  }
  return -1;
}

absl::StatusOr<Quantization> SubgraphLowering::QuantizationAt(int index) const {
  absl::StatusOr<Quantization> quantization = QuantizationOf(tensor(index));
  if (quantization.ok()) return quantization;
  return absl::Status(quantization.status().code(),
                      absl::StrCat(Describe(subgraph_, index), ": ",
                                   quantization.status().message()));
}

absl::StatusOr<Value> SubgraphLowering::Stored(int index) {
  const auto it = stored_.find(index);
  if (it != stored_.end()) return it->second;
  if (tensor(index).is_variable()) {
    OPTFARM_ASSIGN_OR_RETURN(const Value value, ReadState(index));
    return value;
  }
  if (!IsConstant(index)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(subgraph_, index), " is read before anything computes it"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Constant constant, ConstantOf(index));
  const Value value = maker_.AddConst(NameOf(index), constant);
  stored_[index] = value;
  return value;
}

absl::StatusOr<Value> SubgraphLowering::Real(int index) {
  const auto it = real_.find(index);
  if (it != real_.end()) return it->second;
  OPTFARM_ASSIGN_OR_RETURN(const Value stored, Stored(index));
  if (!IsQuantized(tensor(index))) return stored;
  OPTFARM_ASSIGN_OR_RETURN(
      const Value real,
      Dequantized(index, stored, absl::StrCat(NameOf(index), "/dequantized")));
  real_[index] = real;
  return real;
}

Value SubgraphLowering::DequantizedBy(const Quantization& quantization,
                                      int axis, int bits, const Value& stored,
                                      absl::string_view name) {
  Constant scale = VectorOf<float>(tensorflow::DT_FLOAT, quantization.scale);
  absl::StatusOr<Constant> zero =
      IntegersAs(stored.type, quantization.zero_point);
  if (!zero.ok()) {
    maker_.Fail(zero.status());
    return {};
  }
  if (!quantization.is_per_channel()) {
    scale.shape.clear();
    zero->shape.clear();
  }
  const Value inputs[] = {
      stored, maker_.AddConst(absl::StrCat(name, "/scale"), scale),
      maker_.AddConst(absl::StrCat(name, "/zero_point"), *zero)};
  return maker_.Add("DequantizeLinear", name, inputs,
                    [&](tensorflow::NodeDef* node) {
                      if (quantization.is_per_channel()) {
                        graph::SetInt(node, "axis", axis);
                      }
                      if (bits != 8) graph::SetInt(node, "bits", bits);
                    });
}

absl::StatusOr<Value> SubgraphLowering::Dequantized(int index,
                                                    const Value& stored,
                                                    absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const Quantization quantization,
                           QuantizationAt(index));
  return DequantizedBy(quantization, quantization.axis, BitsOf(tensor(index)),
                       stored, name);
}

absl::StatusOr<Value> SubgraphLowering::Quantized(int index, const Value& real,
                                                  absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const Quantization quantization,
                           QuantizationAt(index));
  if (quantization.is_per_channel()) {
    return Unsupported("an activation with a scale for each channel");
  }
  Constant scale = VectorOf<float>(tensorflow::DT_FLOAT, quantization.scale);
  OPTFARM_ASSIGN_OR_RETURN(Constant zero, IntegersAs(TypeOf(tensor(index)),
                                                     quantization.zero_point));
  scale.shape.clear();
  zero.shape.clear();
  const Value inputs[] = {
      real, maker_.AddConst(absl::StrCat(name, "/scale"), scale),
      maker_.AddConst(absl::StrCat(name, "/zero_point"), zero)};
  const int bits = BitsOf(tensor(index));
  return maker_.Add("QuantizeLinear", name, inputs,
                    [&](tensorflow::NodeDef* node) {
                      if (bits != 8) graph::SetInt(node, "bits", bits);
                    });
}

void SubgraphLowering::SetStored(int index, const Value& value) {
  stored_[index] = value;
  real_.erase(index);
}

std::string SubgraphLowering::KeyOfState(int tensor) const {
  return absl::StrCat("state_", tensor, "_", NameOf(tensor));
}

// What a state tensor holds before the first run: what stands for zero.
absl::StatusOr<Constant> SubgraphLowering::ZeroState(int index) const {
  const Tensor& t = tensor(index);
  Constant zero;
  zero.type = TypeOf(t);
  zero.shape = ShapeOf(t);
  int64_t bytes = graph::ElementBytes(zero.type);
  // Before it is there: the node maker would refuse it afterwards.
  const int64_t most = std::max<int64_t>(model_.budget.constant_bytes, 0);
  for (const int64_t dim : zero.shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("state tensor ", index, " has no known shape"));
    }
    if (dim > 0 && bytes > most / dim) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "state tensor ", index, " of shape [", absl::StrJoin(zero.shape, ","),
          "] takes far more memory than the file has bytes"));
    }
    bytes *= dim;
  }
  char fill = 0;
  if (t.type() == TensorType::INT8 && IsQuantized(t)) {
    OPTFARM_ASSIGN_OR_RETURN(const Quantization quantization,
                             QuantizationAt(index));
    fill = static_cast<char>(quantization.zero_point[0]);
  }
  zero.bytes.assign(static_cast<size_t>(bytes), fill);
  return zero;
}

absl::StatusOr<Value> SubgraphLowering::ReadState(int tensor) {
  if (variables_ == nullptr) {
    return Unsupported("state in the body of IF or WHILE");
  }
  const std::string key = KeyOfState(tensor);
  Variable& variable = (*variables_)[key];
  if (variable.initial.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant zero, ZeroState(tensor));
    variable.initial =
        maker_.AddConst(absl::StrCat(NameOf(tensor), "/initial"), zero);
  }
  return ReadVariable(key, &maker_, variables_);
}

absl::Status SubgraphLowering::AssignState(int tensor, const Value& value) {
  // A state that is not read first would be stored without need of a read, but
  // operators with state always read it.
  OPTFARM_RETURN_IF_ERROR(ReadState(tensor).status());
  Variable& variable = (*variables_)[KeyOfState(tensor)];
  variable.current = value;
  variable.is_assigned = true;
  return absl::OkStatus();
}

absl::Status SubgraphLowering::LowerOperator(const Operator& op) {
  OpLowering c(this, &op);
  const OperatorKind& kind = c.kind();
  absl::Status status;
  if (!MayLack(kind.code, kWithoutInputs) && !c.Has(0)) {
    status = absl::InvalidArgumentError("has no inputs");
  } else if (!MayLack(kind.code, kWithoutOutputs) && c.output_count() == 0) {
    status = absl::InvalidArgumentError("has no outputs");
  } else if (kind.is_custom) {
    status = FindCustomOperator(kind.name)->lower(c);
  } else {
    const OperatorRow& row = *FindOperator(kind.code);
    if (kind.version > row.versions) {
      status = Unsupported(absl::StrCat("version ", kind.version));
    } else {
      status = row.lower(row, c);
    }
  }
  if (status.ok()) status = maker_.status();
  if (status.ok()) return status;
  const std::string output =
      c.output_count() > 0
          ? absl::StrCat(", which makes ", Describe(subgraph_, c.OutputId(0)))
          : "";
  return absl::Status(
      status.code(),
      absl::StrCat("operator ", kind.name, output, ": ", status.message()));
}

absl::Status SubgraphLowering::LowerOperators() {
  if (subgraph_.operators() == nullptr) return absl::OkStatus();
  // All that we lack in one message.
  std::map<std::string, int> unknown;
  for (const Operator* op : *subgraph_.operators()) {
    const OperatorKind& kind = model_.file.KindOf(*op);
    const bool is_known = kind.is_custom
                              ? FindCustomOperator(kind.name) != nullptr
                              : FindOperator(kind.code) != nullptr;
    if (is_known) continue;
    ++unknown[absl::StrCat(kind.is_custom ? "custom operator " : "operator ",
                           kind.name)];
  }
  if (!unknown.empty()) {
    return absl::UnimplementedError(absl::StrCat(
        "not supported: ",
        absl::StrJoin(unknown, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.first, " (", entry.second, ")");
        })));
  }
  for (const Operator* op : *subgraph_.operators()) {
    OPTFARM_RETURN_IF_ERROR(LowerOperator(*op));
  }
  return absl::OkStatus();
}

// --- One operator ------------------------------------------------------------

OpLowering::OpLowering(SubgraphLowering* subgraph, const Operator* op)
    : subgraph_(*subgraph),
      op_(*op),
      kind_(subgraph->model().file.KindOf(*op)) {}

int OpLowering::input_count() const {
  return op_.inputs() == nullptr ? 0 : static_cast<int>(op_.inputs()->size());
}

int OpLowering::output_count() const {
  return op_.outputs() == nullptr ? 0 : static_cast<int>(op_.outputs()->size());
}

bool OpLowering::Has(int i) const {
  return i >= 0 && i < input_count() && op_.inputs()->Get(i) >= 0;
}

int OpLowering::InputId(int i) const { return op_.inputs()->Get(i); }
int OpLowering::OutputId(int i) const { return op_.outputs()->Get(i); }

void OpLowering::Fail(absl::Status status) {
  subgraph_.maker().Fail(std::move(status));
}

bool OpLowering::HasBytes(const Tensor& tensor) const {
  if ((tensor.type() != TensorType::INT8 &&
       tensor.type() != TensorType::UINT8) ||
      !IsQuantized(tensor)) {
    return false;
  }
  const auto quantization = QuantizationOf(tensor);
  return quantization.ok() && !quantization->is_per_channel();
}

bool OpLowering::InputFitsOutput(int input, int output) const {
  if (!Has(input) || in(input).type() != out(output).type()) return false;
  const bool is_quantized = IsQuantized(in(input));
  if (is_quantized != IsQuantized(out(output))) return false;
  if (!is_quantized) return true;
  const auto of_input = subgraph_.QuantizationAt(InputId(input));
  const auto of_output = subgraph_.QuantizationAt(OutputId(output));
  return of_input.ok() && of_output.ok() && *of_input == *of_output;
}

Value OpLowering::Stored(int i) {
  if (!status().ok()) return {};
  if (!Has(i)) {
    Fail(absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing")));
    return {};
  }
  const absl::StatusOr<Value> value = subgraph_.Stored(InputId(i));
  if (value.ok()) return *value;
  Fail(value.status());
  return {};
}

Value OpLowering::Real(int i) {
  if (!status().ok()) return {};
  if (!Has(i)) {
    Fail(absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing")));
    return {};
  }
  const absl::StatusOr<Value> value = subgraph_.Real(InputId(i));
  if (value.ok()) return *value;
  Fail(value.status());
  return {};
}

Value OpLowering::Scalar(int i, absl::string_view suffix) {
  const Value stored = Stored(i);
  if (!status().ok() || ShapeOf(in(i)).empty()) return stored;
  if (!subgraph_.IsConstant(InputId(i))) {
    return Add("Reshape", suffix,
               {stored, IntVector(absl::StrCat(suffix, "/shape"), {})});
  }
  absl::StatusOr<Constant> constant = subgraph_.ConstantOf(InputId(i));
  if (!constant.ok()) {
    Fail(constant.status());
    return {};
  }
  if (static_cast<int64_t>(constant->bytes.size()) !=
      graph::ElementBytes(constant->type)) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("input ", i, " must have one element")));
    return {};
  }
  constant->shape.clear();
  return Const(suffix, *constant);
}

std::optional<std::vector<int64_t>> OpLowering::Integers(int i) {
  if (!Has(i)) return std::nullopt;
  const TensorType type = in(i).type();
  if ((type != TensorType::INT32 && type != TensorType::INT64) ||
      !subgraph_.IsConstant(InputId(i))) {
    return std::nullopt;
  }
  const absl::StatusOr<Constant> constant = subgraph_.ConstantOf(InputId(i));
  if (constant.ok()) return IntegersOf(*constant);
  Fail(constant.status());
  return std::nullopt;
}

Value OpLowering::Add(absl::string_view op_name, absl::string_view suffix,
                      absl::Span<const Value> inputs,
                      SetAttributes attributes) {
  const std::string base =
      output_count() > 0 ? subgraph_.NameOf(OutputId(0)) : kind_.name;
  const Value value = subgraph_.maker().Add(
      op_name, absl::StrCat(base, "/", suffix), inputs, attributes);
  own_.push_back(value.node);
  return value;
}

Value OpLowering::Const(absl::string_view suffix, const Constant& constant) {
  const std::string base =
      output_count() > 0 ? subgraph_.NameOf(OutputId(0)) : kind_.name;
  return subgraph_.maker().AddConst(absl::StrCat(base, "/", suffix), constant);
}

Value OpLowering::IntVector(absl::string_view suffix,
                            absl::Span<const int64_t> values) {
  const absl::StatusOr<Constant> constant =
      IntegersAs(tensorflow::DT_INT32, values);
  if (constant.ok()) return Const(suffix, *constant);
  Fail(constant.status());
  return {};
}

Value OpLowering::Int(absl::string_view suffix, int64_t value) {
  const auto narrow = static_cast<int32_t>(value);
  Constant constant = VectorOf<int32_t>(tensorflow::DT_INT32, {&narrow, 1});
  constant.shape.clear();
  return Const(suffix, constant);
}

Value OpLowering::Float(absl::string_view suffix, float value) {
  Constant constant = VectorOf<float>(tensorflow::DT_FLOAT, {&value, 1});
  constant.shape.clear();
  return Const(suffix, constant);
}

Value OpLowering::ZeroOf(absl::string_view suffix, tensorflow::DataType type) {
  Constant constant;
  constant.type = type;
  constant.bytes.assign(std::max<int64_t>(graph::ElementBytes(type), 0), '\0');
  return Const(suffix, constant);
}

Value OpLowering::Cast(const Value& value, tensorflow::DataType type,
                       absl::string_view suffix) {
  if (value.type == type) return value;
  return Add("Cast", suffix, {value}, [&](tensorflow::NodeDef* node) {
    graph::SetType(node, "DstT", type);
  });
}

// The node takes the tensor's name, where it is this operator's.
Value OpLowering::Finish(int o, const Value& value) {
  if (!status().ok()) return {};
  const auto it = std::find(own_.begin(), own_.end(), value.node);
  if (it == own_.end()) return value;
  Value named = value;
  const bool is_pinned =
      std::find(pinned_.begin(), pinned_.end(), value.node) != pinned_.end();
  if (value.port == 0 && output_count() == 1 && !is_pinned) {
    named = subgraph_.maker().Rename(value, subgraph_.NameOf(OutputId(o)));
    own_.erase(it);
  }
  graph::SetTensorName(TextOf(out(o).name()), named.port,
                       subgraph_.maker().NodeOf(named));
  return named;
}

void OpLowering::SetStored(int o, const Value& value) {
  if (!status().ok()) return;
  if (o >= output_count()) return;
  const tensorflow::DataType type = TypeOf(out(o));
  if (value.type != type) {
    Fail(absl::InvalidArgumentError(absl::StrCat(
        "its output ", o, " has type ", EnumNameTensorType(out(o).type()),
        ", but its inputs make ", graph::DataTypeName(value.type))));
    return;
  }
  subgraph_.SetStored(OutputId(o), Finish(o, value));
}

void OpLowering::SetReal(int o, const Value& value, SetAttributes attributes) {
  if (!status().ok()) return;
  if (o >= output_count()) return;
  if (!IsQuantized(out(o))) return SetStored(o, value);
  const absl::StatusOr<Value> quantized =
      subgraph_.Quantized(OutputId(o), value, subgraph_.NameOf(OutputId(o)));
  if (!quantized.ok()) return Fail(quantized.status());
  if (!status().ok()) return;
  tensorflow::NodeDef* const node = subgraph_.maker().NodeOf(*quantized);
  attributes(node);
  graph::SetTensorName(TextOf(out(o).name()), 0, node);
  subgraph_.SetStored(OutputId(o), *quantized);
}

}  // namespace optfarm::tflite
