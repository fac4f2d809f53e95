// The arithmetic of arguments: which types and how many tensors a node has. The
// table of signatures is in ops/op_table.cc.

#include "engine/graph/op_defs.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::OpDef;

absl::Status NodeError(const NodeDef& node, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("node '", node.name(), "' (", node.op(), "): ", what));
}

// The attribute's value, checked to be of the wanted kind.
absl::StatusOr<const AttrValue*> NeedAttr(const OpDef& op_def,
                                          const NodeDef& node,
                                          absl::string_view name,
                                          AttrValue::ValueCase kind) {
  const AttrValue* value = FindAttrOrDefault(op_def, node, name);
  if (value == nullptr) {
    return NodeError(node, absl::StrCat("attribute '", name, "' is missing"));
  }
  if (value->value_case() != kind) {
    return NodeError(node,
                     absl::StrCat("attribute '", name, "' has the wrong kind"));
  }
  return value;
}

// Number of tensors the argument stands for; at most kMaxNodeArity.
absl::StatusOr<int> ArgCount(const OpDef& op_def, const NodeDef& node,
                             const OpDef::ArgDef& arg) {
  int64_t count = 1;
  absl::string_view attr;
  if (!arg.type_list_attr().empty()) {
    attr = arg.type_list_attr();
    OPTFARM_ASSIGN_OR_RETURN(const AttrValue* types,
                             NeedAttr(op_def, node, attr, AttrValue::kList));
    count = types->list().type_size();
  } else if (!arg.number_attr().empty()) {
    attr = arg.number_attr();
    OPTFARM_ASSIGN_OR_RETURN(const AttrValue* number,
                             NeedAttr(op_def, node, attr, AttrValue::kI));
    count = number->i();
  }
  if (count < 0 || count > kMaxNodeArity) {
    return NodeError(node, absl::StrCat("attribute '", attr, "' asks for ",
                                        count, " tensors"));
  }
  return static_cast<int>(count);
}

DataType WithRef(DataType type, bool is_ref) {
  if (!is_ref || IsRefType(type)) return type;
  return static_cast<DataType>(type + 100);
}

using Args = google::protobuf::RepeatedPtrField<OpDef::ArgDef>;

absl::StatusOr<std::vector<DataType>> ArgTypes(const OpDef& op_def,
                                               const NodeDef& node,
                                               const Args& args) {
  std::vector<DataType> types;
  for (const OpDef::ArgDef& arg : args) {
    OPTFARM_ASSIGN_OR_RETURN(const int count, ArgCount(op_def, node, arg));
    if (types.size() + count > kMaxNodeArity) {
      return NodeError(node, "has too many tensors");
    }
    if (!arg.type_list_attr().empty()) {
      const AttrValue* list =
          FindAttrOrDefault(op_def, node, arg.type_list_attr());
      for (int type : list->list().type()) {
        types.push_back(WithRef(static_cast<DataType>(type), arg.is_ref()));
      }
      continue;
    }
    DataType type = arg.type();
    if (!arg.type_attr().empty()) {
      OPTFARM_ASSIGN_OR_RETURN(
          const AttrValue* value,
          NeedAttr(op_def, node, arg.type_attr(), AttrValue::kType));
      type = value->type();
    }
    types.insert(types.end(), count, WithRef(type, arg.is_ref()));
  }
  return types;
}

absl::StatusOr<PortRange> ArgPorts(const OpDef& op_def, const NodeDef& node,
                                   const Args& args,
                                   absl::string_view argument) {
  PortRange range;
  for (const OpDef::ArgDef& arg : args) {
    OPTFARM_ASSIGN_OR_RETURN(const int count, ArgCount(op_def, node, arg));
    range.end = range.begin + count;
    if (range.end > kMaxNodeArity) {
      return NodeError(node, "has too many tensors");
    }
    if (arg.name() == argument) return range;
    range.begin = range.end;
  }
  return absl::NotFoundError(
      absl::StrCat("op ", op_def.name(), " has no argument '", argument, "'"));
}

absl::StatusOr<int> ArgsCount(const OpDef& op_def, const NodeDef& node,
                              const Args& args) {
  int64_t total = 0;
  for (const OpDef::ArgDef& arg : args) {
    OPTFARM_ASSIGN_OR_RETURN(const int count, ArgCount(op_def, node, arg));
    total += count;
    if (total > kMaxNodeArity) return NodeError(node, "has too many tensors");
  }
  return static_cast<int>(total);
}

}  // namespace

const OpDef::AttrDef* FindAttrDef(const OpDef& op_def, absl::string_view name) {
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

bool IsLateAttribute(const OpDef::AttrDef& attr) {
  return attr.description() == "late";
}

const AttrValue* FindAttrOrDefault(const OpDef& op_def, const NodeDef& node,
                                   absl::string_view name) {
  const auto it = node.attr().find(std::string(name));
  if (it != node.attr().end()) return &it->second;
  const OpDef::AttrDef* attr = FindAttrDef(op_def, name);
  if (attr == nullptr || !attr->has_default_value()) return nullptr;
  return &attr->default_value();
}

absl::StatusOr<std::vector<DataType>> OutputTypes(const OpDef& op_def,
                                                  const NodeDef& node) {
  return ArgTypes(op_def, node, op_def.output_arg());
}

absl::StatusOr<std::vector<DataType>> InputTypes(const OpDef& op_def,
                                                 const NodeDef& node) {
  return ArgTypes(op_def, node, op_def.input_arg());
}

absl::StatusOr<int> OutputCount(const OpDef& op_def, const NodeDef& node) {
  return ArgsCount(op_def, node, op_def.output_arg());
}

absl::StatusOr<int> InputCount(const OpDef& op_def, const NodeDef& node) {
  return ArgsCount(op_def, node, op_def.input_arg());
}

absl::StatusOr<PortRange> InputPorts(const OpDef& op_def, const NodeDef& node,
                                     absl::string_view argument) {
  return ArgPorts(op_def, node, op_def.input_arg(), argument);
}

absl::StatusOr<PortRange> OutputPorts(const OpDef& op_def, const NodeDef& node,
                                      absl::string_view argument) {
  return ArgPorts(op_def, node, op_def.output_arg(), argument);
}

absl::Status ApplyDefaultAttributes(const OpDef& op_def, NodeDef* node,
                                    DefaultAttributes which) {
  if (node->op() != op_def.name()) {
    return NodeError(*node, absl::StrCat("is not of op ", op_def.name()));
  }
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (!attr.has_default_value()) continue;
    if (which == DefaultAttributes::kUnderstoodByAll && IsLateAttribute(attr)) {
      continue;
    }
    // Leaves an attribute that is there as it is.
    node->mutable_attr()->insert({attr.name(), attr.default_value()});
  }
  return absl::OkStatus();
}

bool IsRefType(DataType type) { return type > 100; }

}  // namespace optfarm::graph
