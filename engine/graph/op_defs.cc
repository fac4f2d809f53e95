// The table of op signatures, read entry by entry from the text of
// op_defs_*.cc, and the arithmetic of arguments: which types and how many
// tensors a node has.

#include "engine/graph/op_defs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "engine/graph/op_signatures.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::OpDef;

// An entry of the text: one op, or several that differ in name only. It is read
// when somebody asks; nearly all of the thousand never are.
class OpEntry {
 public:
  explicit OpEntry(absl::string_view text) : text_(text) {}

  std::vector<absl::string_view> Names() const {
    std::vector<absl::string_view> names =
        absl::StrSplit(text_.substr(0, text_.find('(')), ',');
    for (absl::string_view& name : names) {
      name = absl::StripAsciiWhitespace(name);
    }
    return names;
  }
  // REQUIRES: `name` is one of Names().
  const OpDef& Get(absl::string_view name) {
    absl::call_once(once_, [this] {
      absl::StatusOr<std::vector<OpDef>> ops = ParseOpSignatures(text_);
      // The text is ours; op_signatures_test reads it all.
      OPTFARM_CHECK(ops.ok());
      ops_ = *std::move(ops);
    });
    const auto it =
        std::find_if(ops_.begin(), ops_.end(),
                     [name](const OpDef& op) { return name == op.name(); });
    OPTFARM_CHECK(it != ops_.end());
    return *it;
  }

 private:
  const absl::string_view text_;
  absl::once_flag once_;
  std::vector<OpDef> ops_;
};

using OpTable =
    absl::flat_hash_map<absl::string_view, std::shared_ptr<OpEntry>>;

// Where the entry after the one at `begin` starts: at the next line that
// neither continues it nor is a comment.
size_t EndOfEntry(absl::string_view text, size_t begin) {
  for (size_t at = text.find('\n', begin); at != absl::string_view::npos;
       at = text.find('\n', at + 1)) {
    const char next = at + 1 < text.size() ? text[at + 1] : ' ';
    if (absl::ascii_isalpha(next) || next == '_') return at + 1;
  }
  return text.size();
}

void AddSignatures(absl::string_view text, OpTable* table) {
  // The text begins with an empty line.
  for (size_t begin = EndOfEntry(text, 0); begin < text.size();) {
    const size_t end = EndOfEntry(text, begin);
    const auto entry =
        std::make_shared<OpEntry>(text.substr(begin, end - begin));
    for (absl::string_view name : entry->Names()) {
      const bool is_new = table->emplace(name, entry).second;
      OPTFARM_CHECK(is_new);
    }
    begin = end;
  }
}

const OpTable& Table() {
  static const OpTable* const table = [] {
    auto* built = new OpTable;
    for (absl::string_view text :
         {ArrayOpSignatures(), ControlFlowOpSignatures(), ImageOpSignatures(),
          LinearAlgebraOpSignatures(), MathOpSignatures(), NnOpSignatures(),
          QuantizedOpSignatures(), RandomOpSignatures(), StateOpSignatures(),
          StringOpSignatures()}) {
      AddSignatures(text, built);
    }
    return built;
  }();
  return *table;
}

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

const OpDef* FindOpDef(absl::string_view op) {
  const auto it = Table().find(op);
  return it == Table().end() ? nullptr : &it->second->Get(it->first);
}

std::vector<absl::string_view> AllOpNames() {
  std::vector<absl::string_view> names;
  names.reserve(Table().size());
  for (const auto& [name, entry] : Table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

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

bool IsStateful(absl::string_view op) {
  const OpDef* op_def = FindOpDef(op);
  return op_def == nullptr || op_def->is_stateful();
}

bool IsRefType(DataType type) { return type > 100; }

}  // namespace optfarm::graph
