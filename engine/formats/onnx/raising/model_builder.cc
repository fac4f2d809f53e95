#include "engine/formats/onnx/raising/model_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

// Constants up to this size are looked for among the others.
constexpr size_t kSmallBytes = 256;
// Protobuf cannot hold more in one message.
constexpr uint64_t kMaxModelBytes = (uint64_t{1} << 31) - 1;

// The version of the file format that came with an opset.
int64_t IrVersionOf(int opset) {
  if (opset >= 21) return 10;
  if (opset >= 19) return 9;
  return opset >= 15 ? 8 : 7;
}

void SetAttribute(const OnnxAttribute& from, onnx::AttributeProto* to) {
  to->set_name(from.name);
  if (const auto* i = std::get_if<int64_t>(&from.value)) {
    to->set_type(onnx::AttributeProto::INT);
    to->set_i(*i);
  } else if (const auto* f = std::get_if<float>(&from.value)) {
    to->set_type(onnx::AttributeProto::FLOAT);
    to->set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&from.value)) {
    to->set_type(onnx::AttributeProto::STRING);
    to->set_s(*s);
  } else if (const auto* ints =
                 std::get_if<std::vector<int64_t>>(&from.value)) {
    to->set_type(onnx::AttributeProto::INTS);
    to->mutable_ints()->Add(ints->begin(), ints->end());
  } else if (const auto* floats =
                 std::get_if<std::vector<float>>(&from.value)) {
    to->set_type(onnx::AttributeProto::FLOATS);
    to->mutable_floats()->Add(floats->begin(), floats->end());
  } else if (const auto* strings =
                 std::get_if<std::vector<std::string>>(&from.value)) {
    to->set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& text : *strings) to->add_strings(text);
  }
}

void SetPort(const OnnxPort& from, onnx::ValueInfoProto* to) {
  to->set_name(from.name);
  auto* tensor = to->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(OnnxTypeOf(from.type));
  if (!from.shape.has_rank()) return;
  auto* shape = tensor->mutable_shape();
  for (int i = 0; i < from.shape.rank(); ++i) {
    auto* dim = shape->add_dim();
    const auto at = static_cast<size_t>(i);
    if (from.shape.dim(i) >= 0) {
      dim->set_dim_value(from.shape.dim(i));
    } else if (at < from.dim_names.size() && !from.dim_names[at].empty()) {
      dim->set_dim_param(from.dim_names[at]);
    }
  }
}

}  // namespace

int OnnxTypeOf(DataType type) {
  switch (type) {
    case tensorflow::DT_FLOAT:
      return onnx::TensorProto::FLOAT;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      return onnx::TensorProto::UINT8;
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return onnx::TensorProto::INT8;
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QUINT16:
      return onnx::TensorProto::UINT16;
    case tensorflow::DT_INT16:
    case tensorflow::DT_QINT16:
      return onnx::TensorProto::INT16;
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return onnx::TensorProto::INT32;
    case tensorflow::DT_INT64:
      return onnx::TensorProto::INT64;
    case tensorflow::DT_BOOL:
      return onnx::TensorProto::BOOL;
    case tensorflow::DT_HALF:
      return onnx::TensorProto::FLOAT16;
    case tensorflow::DT_DOUBLE:
      return onnx::TensorProto::DOUBLE;
    case tensorflow::DT_UINT32:
      return onnx::TensorProto::UINT32;
    case tensorflow::DT_UINT64:
      return onnx::TensorProto::UINT64;
    case tensorflow::DT_BFLOAT16:
      return onnx::TensorProto::BFLOAT16;
    case tensorflow::DT_UINT4:
      return onnx::TensorProto::UINT4;
    default:
      return 0;
  }
}

ValueId OnnxModelBuilder::NewValue(absl::string_view name) {
  names_.emplace_back(name);
  makers_.push_back(-1);
  is_fixed_name_.push_back(false);
  return static_cast<ValueId>(names_.size() - 1);
}

ValueId OnnxModelBuilder::AddInput(OnnxPort input) {
  const ValueId value = NewValue(input.name);
  is_fixed_name_[static_cast<size_t>(value)] = true;
  inputs_.push_back(std::move(input));
  input_values_.push_back(value);
  return value;
}

ValueId OnnxModelBuilder::AddConstant(DataType type, std::vector<int64_t> dims,
                                      std::string bytes,
                                      absl::string_view name) {
  std::string key;
  if (bytes.size() <= kSmallBytes) {
    key = absl::StrCat(OnnxTypeOf(type), ":");
    for (int64_t dim : dims) absl::StrAppend(&key, dim, ",");
    key.append("=");
    key.append(bytes);
    const auto found = small_constants_.find(key);
    if (found != small_constants_.end()) return found->second;
  }
  const ValueId value = NewValue(name);
  constants_.push_back({type, std::move(dims), std::move(bytes), value});
  if (!key.empty()) small_constants_.emplace(std::move(key), value);
  return value;
}

std::vector<ValueId> OnnxModelBuilder::AddNode(
    absl::string_view op, std::vector<ValueId> inputs, int count,
    std::vector<OnnxAttribute> attributes, absl::string_view name) {
  Node node;
  node.op = std::string(op);
  node.name = std::string(name);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  for (int i = 0; i < count; ++i) {
    const ValueId value =
        NewValue(i == 0 ? std::string(name) : absl::StrCat(name, ":", i));
    makers_[static_cast<size_t>(value)] = static_cast<int>(nodes_.size());
    node.outputs.push_back(value);
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void OnnxModelBuilder::AddNote(ValueId value, std::string key,
                               std::string text) {
  const int maker = makers_[static_cast<size_t>(value)];
  OPTFARM_CHECK(maker >= 0);
  nodes_[static_cast<size_t>(maker)].notes.emplace_back(std::move(key),
                                                        std::move(text));
}

bool OnnxModelBuilder::MayBecomeOutput(ValueId value) const {
  return makers_[static_cast<size_t>(value)] >= 0 &&
         !is_fixed_name_[static_cast<size_t>(value)];
}

void OnnxModelBuilder::AddOutput(OnnxPort output, ValueId value) {
  if (!MayBecomeOutput(value)) {
    value = AddNode("Identity", {value}, 1, {}, output.name)[0];
  }
  names_[static_cast<size_t>(value)] = output.name;
  is_fixed_name_[static_cast<size_t>(value)] = true;
  outputs_.push_back({std::move(output), value});
}

ValueId OnnxModelBuilder::AddChoice(const std::string& name, ValueId condition,
                                    ValueId if_true, ValueId if_false,
                                    DataType type) {
  const auto [known, is_new] = choices_.try_emplace(
      std::pair(name, condition), static_cast<int>(nodes_.size()));
  if (is_new) AddNode("If", {condition}, 0, {}, name);
  Node& node = nodes_[static_cast<size_t>(known->second)];
  const ValueId value = NewValue(
      node.outputs.empty() ? name
                           : absl::StrCat(name, ":", node.outputs.size()));
  makers_[static_cast<size_t>(value)] = known->second;
  node.outputs.push_back(value);
  node.branches[0].push_back(if_true);
  node.branches[1].push_back(if_false);
  node.types.push_back(type);
  return value;
}

std::vector<ValueId> OnnxModelBuilder::ReadBy(const Node& node) const {
  std::vector<ValueId> read;
  for (const auto* values :
       {&node.inputs, &node.branches[0], &node.branches[1]}) {
    for (const ValueId value : *values) {
      if (value != kNoValue) read.push_back(value);
    }
  }
  return read;
}

std::vector<int> OnnxModelBuilder::OrderFromOutputs() const {
  std::vector<int> order;
  std::vector<bool> seen(nodes_.size(), false);
  struct Visit {
    int number;
    std::vector<ValueId> read;
    size_t done = 0;
  };
  std::vector<Visit> stack;
  const auto visit = [&](ValueId value) {
    const int maker = makers_[static_cast<size_t>(value)];
    if (maker < 0 || seen[static_cast<size_t>(maker)]) return;
    seen[static_cast<size_t>(maker)] = true;
    stack.push_back({maker, ReadBy(nodes_[static_cast<size_t>(maker)])});
  };
  for (const Output& output : outputs_) {
    visit(output.value);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.done == top.read.size()) {
        order.push_back(top.number);
        stack.pop_back();
      } else {
        visit(top.read[top.done++]);
      }
    }
  }
  return order;
}

std::vector<int> OnnxModelBuilder::NeededNodes() {
  std::vector<int> order = OrderFromOutputs();
  // Without choices they were added in such an order.
  if (choices_.empty()) std::sort(order.begin(), order.end());
  is_needed_.assign(names_.size(), false);
  for (const Output& output : outputs_) {
    is_needed_[static_cast<size_t>(output.value)] = true;
  }
  for (const int number : order) {
    const Node& node = nodes_[static_cast<size_t>(number)];
    for (const ValueId value : node.outputs) {
      is_needed_[static_cast<size_t>(value)] = true;
    }
    for (const ValueId value : ReadBy(node)) {
      is_needed_[static_cast<size_t>(value)] = true;
    }
  }
  return order;
}

int OnnxModelBuilder::CommonScope(int a, int b) const {
  while (a != b) {
    int& deeper = scopes_[static_cast<size_t>(a)].depth >=
                          scopes_[static_cast<size_t>(b)].depth
                      ? a
                      : b;
    deeper = scopes_[static_cast<size_t>(deeper)].parent;
  }
  return a;
}

void OnnxModelBuilder::FindScopes(const std::vector<int>& order) {
  constexpr int kUnused = -1;
  scopes_.assign(1, Scope());
  std::vector<int> homes(nodes_.size(), kUnused);
  const auto use = [&](ValueId value, int scope) {
    const int maker = makers_[static_cast<size_t>(value)];
    if (maker < 0) return;
    int& home = homes[static_cast<size_t>(maker)];
    home = home == kUnused ? scope : CommonScope(home, scope);
  };
  for (const Output& output : outputs_) use(output.value, 0);
  for (auto number = order.rbegin(); number != order.rend(); ++number) {
    const Node& node = nodes_[static_cast<size_t>(*number)];
    int& known = homes[static_cast<size_t>(*number)];
    // Only where choices depend on each other does nothing stand behind it.
    if (known == kUnused) known = 0;
    const int home = known;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) use(input, home);
    }
    if (node.types.empty()) continue;
    branch_scopes_[*number] = static_cast<int>(scopes_.size());
    for (const auto& branch : node.branches) {
      const int scope = static_cast<int>(scopes_.size());
      scopes_.push_back(
          {home, scopes_[static_cast<size_t>(home)].depth + 1, {}});
      for (const ValueId value : branch) use(value, scope);
    }
  }
  for (const int number : order) {
    scopes_[static_cast<size_t>(homes[static_cast<size_t>(number)])]
        .nodes.push_back(number);
  }
  for (const int number : order) {
    if (nodes_[static_cast<size_t>(number)].types.empty()) continue;
    for (const int branch : {0, 1}) {
      AddBranchReturns(number, branch, branch_scopes_[number] + branch, homes);
    }
  }
}

void OnnxModelBuilder::AddBranchReturns(int node, int branch, int scope,
                                        const std::vector<int>& homes) {
  absl::flat_hash_set<ValueId> returned;
  const size_t count = nodes_[static_cast<size_t>(node)].types.size();
  for (size_t i = 0; i < count; ++i) {
    Node& from = nodes_[static_cast<size_t>(node)];
    const ValueId value = from.branches[branch][i];
    const int maker = makers_[static_cast<size_t>(value)];
    const bool is_own =
        maker >= 0 && homes[static_cast<size_t>(maker)] == scope;
    if (is_own && returned.insert(value).second) continue;
    const std::string name =
        absl::StrCat(from.name, branch == 0 ? "/then" : "/else");
    const int identity = static_cast<int>(nodes_.size());
    const ValueId copy = AddNode("Identity", {value}, 1, {}, name)[0];
    nodes_[static_cast<size_t>(node)].branches[branch][i] = copy;
    is_needed_.push_back(true);
    scopes_[static_cast<size_t>(scope)].nodes.push_back(identity);
  }
}

// Inputs and outputs have their names, the others get free ones.
void OnnxModelBuilder::NameValues() {
  absl::flat_hash_set<std::string> taken;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (is_fixed_name_[i]) taken.insert(names_[i]);
  }
  absl::flat_hash_map<std::string, int> counts;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (is_fixed_name_[i] || !is_needed_[i]) continue;
    if (names_[i].empty()) names_[i] = "tensor";
    const std::string base = names_[i];
    int& count = counts[base];
    while (!taken.insert(names_[i]).second) {
      names_[i] = absl::StrCat(base, "_", ++count);
    }
  }
}

uint64_t OnnxModelBuilder::ConstantBytes() const {
  uint64_t bytes = 0;
  for (const Constant& constant : constants_) {
    if (is_needed_[static_cast<size_t>(constant.value)]) {
      bytes += constant.bytes.size();
    }
  }
  return bytes;
}

std::string OnnxModelBuilder::NameOf(ValueId value) const {
  return value == kNoValue ? "" : names_[static_cast<size_t>(value)];
}

void OnnxModelBuilder::WriteNode(int number, onnx::NodeProto* to) const {
  const Node& from = nodes_[static_cast<size_t>(number)];
  to->set_op_type(from.op);
  to->set_name(NameOf(from.outputs[0]));
  for (ValueId input : from.inputs) to->add_input(NameOf(input));
  for (ValueId output : from.outputs) to->add_output(NameOf(output));
  for (const OnnxAttribute& attribute : from.attributes) {
    SetAttribute(attribute, to->add_attribute());
  }
  for (const auto& [key, text] : from.notes) {
    auto* entry = to->add_metadata_props();
    entry->set_key(key);
    entry->set_value(text);
  }
  if (from.types.empty()) return;
  for (const int branch : {0, 1}) {
    auto* attribute = to->add_attribute();
    attribute->set_name(branch == 0 ? "then_branch" : "else_branch");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto* graph = attribute->mutable_g();
    graph->set_name(attribute->name());
    WriteScope(branch_scopes_.at(number) + branch, graph);
    for (size_t i = 0; i < from.types.size(); ++i) {
      OnnxPort port;
      port.name = NameOf(from.branches[branch][i]);
      port.type = from.types[i];
      SetPort(port, graph->add_output());
    }
  }
}

void OnnxModelBuilder::WriteScope(int scope, onnx::GraphProto* to) const {
  for (const int number : scopes_[static_cast<size_t>(scope)].nodes) {
    WriteNode(number, to->add_node());
  }
}

absl::StatusOr<std::string> OnnxModelBuilder::Finish(
    absl::Span<const std::pair<std::string, std::string>> metadata) {
  FindScopes(NeededNodes());
  NameValues();
  if (ConstantBytes() > kMaxModelBytes) {
    return absl::ResourceExhaustedError(
        "the constants take more than 2 GB, which an ONNX file cannot hold");
  }
  onnx::ModelProto model;
  model.set_ir_version(IrVersionOf(opset_));
  model.set_producer_name("optfarm");
  model.set_producer_version(OPTFARM_VERSION);
  for (const auto& [key, value] : metadata) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  auto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(opset_);
  auto* graph = model.mutable_graph();
  graph->set_name("main");
  for (const OnnxPort& input : inputs_) SetPort(input, graph->add_input());
  for (const Output& output : outputs_) {
    SetPort(output.port, graph->add_output());
  }
  WriteScope(0, graph);
  for (Constant& constant : constants_) {
    if (!is_needed_[static_cast<size_t>(constant.value)]) continue;
    auto* tensor = graph->add_initializer();
    tensor->set_name(NameOf(constant.value));
    tensor->set_data_type(OnnxTypeOf(constant.type));
    for (int64_t dim : constant.dims) tensor->add_dims(dim);
    tensor->set_raw_data(std::move(constant.bytes));
  }
  if (model.ByteSizeLong() > kMaxModelBytes) {
    return absl::ResourceExhaustedError(
        "the model takes more than 2 GB, which an ONNX file cannot hold");
  }
  return model.SerializeAsString();
}

}  // namespace optfarm::formats
