#include "engine/graph/attr.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::NodeDef;

absl::Status Wrong(const NodeDef& node, absl::string_view name,
                   absl::string_view wanted, bool present) {
  return absl::InvalidArgumentError(absl::StrCat(
      "node '", node.name(), "' (op ", node.op(), ") ",
      present ? "has an attribute '" : "lacks the attribute '", name, "'",
      present ? " that is not of type " : " of type ", wanted));
}

// Finds attribute `name` and checks its kind.
absl::StatusOr<const AttrValue*> Find(const NodeDef& node,
                                      absl::string_view name,
                                      AttrValue::ValueCase kind,
                                      absl::string_view kind_name) {
  const AttrValue* value = FindAttr(node, name);
  if (value == nullptr || value->value_case() != kind) {
    return Wrong(node, name, kind_name, value != nullptr);
  }
  return value;
}

template <typename T, typename Getter>
absl::StatusOr<T> OrAbsent(const NodeDef& node, absl::string_view name,
                           T absent, Getter getter) {
  if (FindAttr(node, name) == nullptr) return absent;
  return getter(node, name);
}

}  // namespace

const AttrValue* FindAttr(const NodeDef& node, absl::string_view name) {
  const auto it = node.attr().find(std::string(name));
  return it == node.attr().end() ? nullptr : &it->second;
}

absl::StatusOr<int64_t> GetInt(const NodeDef& node, absl::string_view name) {
  auto value = Find(node, name, AttrValue::kI, "int");
  if (!value.ok()) return value.status();
  return (*value)->i();
}

absl::StatusOr<float> GetFloat(const NodeDef& node, absl::string_view name) {
  auto value = Find(node, name, AttrValue::kF, "float");
  if (!value.ok()) return value.status();
  return (*value)->f();
}

absl::StatusOr<bool> GetBool(const NodeDef& node, absl::string_view name) {
  auto value = Find(node, name, AttrValue::kB, "bool");
  if (!value.ok()) return value.status();
  return (*value)->b();
}

absl::StatusOr<std::string> GetString(const NodeDef& node,
                                      absl::string_view name) {
  auto value = Find(node, name, AttrValue::kS, "string");
  if (!value.ok()) return value.status();
  return (*value)->s();
}

absl::StatusOr<DataType> GetType(const NodeDef& node, absl::string_view name) {
  auto value = Find(node, name, AttrValue::kType, "type");
  if (!value.ok()) return value.status();
  return (*value)->type();
}

absl::StatusOr<std::vector<int64_t>> GetInts(const NodeDef& node,
                                             absl::string_view name) {
  auto value = Find(node, name, AttrValue::kList, "list(int)");
  if (!value.ok()) return value.status();
  const auto& list = (*value)->list().i();
  return std::vector<int64_t>(list.begin(), list.end());
}

absl::StatusOr<std::vector<float>> GetFloats(const NodeDef& node,
                                             absl::string_view name) {
  auto value = Find(node, name, AttrValue::kList, "list(float)");
  if (!value.ok()) return value.status();
  const auto& list = (*value)->list().f();
  return std::vector<float>(list.begin(), list.end());
}

absl::StatusOr<std::vector<DataType>> GetTypes(const NodeDef& node,
                                               absl::string_view name) {
  auto value = Find(node, name, AttrValue::kList, "list(type)");
  if (!value.ok()) return value.status();
  std::vector<DataType> types;
  for (int type : (*value)->list().type()) {
    types.push_back(static_cast<DataType>(type));
  }
  return types;
}

absl::StatusOr<const tensorflow::TensorProto*> GetTensor(
    const NodeDef& node, absl::string_view name) {
  auto value = Find(node, name, AttrValue::kTensor, "tensor");
  if (!value.ok()) return value.status();
  return &(*value)->tensor();
}

absl::StatusOr<int64_t> GetIntOr(const NodeDef& node, absl::string_view name,
                                 int64_t absent) {
  return OrAbsent<int64_t>(node, name, absent, GetInt);
}

absl::StatusOr<float> GetFloatOr(const NodeDef& node, absl::string_view name,
                                 float absent) {
  return OrAbsent<float>(node, name, absent, GetFloat);
}

absl::StatusOr<bool> GetBoolOr(const NodeDef& node, absl::string_view name,
                               bool absent) {
  return OrAbsent<bool>(node, name, absent, GetBool);
}

absl::StatusOr<std::string> GetStringOr(const NodeDef& node,
                                        absl::string_view name,
                                        absl::string_view absent) {
  return OrAbsent<std::string>(node, name, std::string(absent), GetString);
}

absl::StatusOr<DataType> GetTypeOr(const NodeDef& node, absl::string_view name,
                                   DataType absent) {
  return OrAbsent<DataType>(node, name, absent, GetType);
}

absl::StatusOr<std::vector<int64_t>> GetIntsOr(const NodeDef& node,
                                               absl::string_view name,
                                               std::vector<int64_t> absent) {
  return OrAbsent<std::vector<int64_t>>(node, name, std::move(absent), GetInts);
}

void SetInt(NodeDef* node, absl::string_view name, int64_t value) {
  (*node->mutable_attr())[std::string(name)].set_i(value);
}
void SetFloat(NodeDef* node, absl::string_view name, float value) {
  (*node->mutable_attr())[std::string(name)].set_f(value);
}
void SetBool(NodeDef* node, absl::string_view name, bool value) {
  (*node->mutable_attr())[std::string(name)].set_b(value);
}
void SetString(NodeDef* node, absl::string_view name, absl::string_view value) {
  (*node->mutable_attr())[std::string(name)].set_s(std::string(value));
}
void SetType(NodeDef* node, absl::string_view name, DataType value) {
  (*node->mutable_attr())[std::string(name)].set_type(value);
}

void SetTypes(NodeDef* node, absl::string_view name,
              const std::vector<DataType>& value) {
  auto* list = (*node->mutable_attr())[std::string(name)].mutable_list();
  list->Clear();
  for (DataType type : value) list->add_type(type);
}

void CopyAttr(const NodeDef& from, absl::string_view name, NodeDef* to) {
  if (const AttrValue* value = FindAttr(from, name)) {
    (*to->mutable_attr())[std::string(name)] = *value;
  }
}

std::string DataTypeName(DataType dtype) {
  const bool is_ref = dtype > 100;
  const DataType base = BaseType(dtype);
  if (base == tensorflow::DT_INVALID || !tensorflow::DataType_IsValid(base)) {
    if (dtype == tensorflow::DT_INVALID) return "INVALID";
    return absl::StrCat("unknown dtype enum (", static_cast<int>(dtype), ")");
  }
  std::string name = tensorflow::DataType_Name(base);
  name = absl::AsciiStrToLower(absl::StripPrefix(name, "DT_"));
  return is_ref ? name + "_ref" : name;
}

absl::StatusOr<DataType> ParseDataType(absl::string_view name) {
  absl::string_view rest = name;
  const bool is_ref = absl::ConsumeSuffix(&rest, "_ref");
  std::string base = absl::AsciiStrToUpper(rest);
  if (base == "FLOAT32") base = "FLOAT";
  if (base == "FLOAT64") base = "DOUBLE";
  if (base == "FLOAT16") base = "HALF";
  DataType dtype;
  if (absl::EndsWith(base, "_REF") || base == "INVALID" ||
      !tensorflow::DataType_Parse(absl::StrCat("DT_", base), &dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' is not a dtype; for instance float, int32, "
                     "uint8 or quint8"));
  }
  return is_ref ? static_cast<DataType>(dtype + 100) : dtype;
}

DataType BaseType(DataType dtype) {
  return dtype > 100 ? static_cast<DataType>(dtype - 100) : dtype;
}

}  // namespace optfarm::graph
