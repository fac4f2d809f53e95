// A scanner over one entry, and a recursive-descent reader of its parts.

#include "engine/graph/ops/op_signatures.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/op_defs.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::OpDef;

// The named sets of types. `number` and `real` are the sets TensorFlow gives
// those names in its own signatures.
struct TypeSet {
  absl::string_view name;
  std::vector<DataType> types;
};

const std::vector<TypeSet>& TypeSets() {
  using namespace tensorflow;  // NOLINT: twenty enum values
  static const auto* const sets = new std::vector<TypeSet>{
      {"number",
       {DT_FLOAT, DT_DOUBLE, DT_INT32, DT_UINT8, DT_INT16, DT_INT8,
        DT_COMPLEX64, DT_INT64, DT_QINT8, DT_QUINT8, DT_QINT32, DT_BFLOAT16,
        DT_QINT16, DT_QUINT16, DT_UINT16, DT_COMPLEX128, DT_HALF, DT_UINT32,
        DT_UINT64}},
      {"real",
       {DT_FLOAT, DT_DOUBLE, DT_INT32, DT_UINT8, DT_INT16, DT_INT8, DT_INT64,
        DT_BFLOAT16, DT_UINT16, DT_HALF, DT_UINT32, DT_UINT64}},
      {"quantized", {DT_QINT8, DT_QUINT8, DT_QINT32, DT_QINT16, DT_QUINT16}},
      {"floating", {DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE}},
      {"complexfloating",
       {DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_COMPLEX64,
        DT_COMPLEX128}},
      {"index", {DT_INT32, DT_INT64}},
  };
  return *sets;
}

// The type a word names, or DT_INVALID.
DataType TypeFromWord(absl::string_view word) {
  DataType type = tensorflow::DT_INVALID;
  tensorflow::DataType_Parse(absl::StrCat("DT_", absl::AsciiStrToUpper(word)),
                             &type);
  return type;
}

// Whether values of the kind can be written in the notation.
bool IsKnownKind(absl::string_view kind) {
  if (absl::ConsumePrefix(&kind, "list(") && !absl::ConsumeSuffix(&kind, ")")) {
    return false;
  }
  for (absl::string_view known :
       {"string", "int", "float", "bool", "type", "shape", "tensor", "func"}) {
    if (kind == known) return true;
  }
  return false;
}

// Reads one entry. The first error stops it; status() then says what and where.
class EntryReader {
 public:
  explicit EntryReader(absl::string_view text) : text_(text), rest_(text) {}

  absl::StatusOr<std::vector<OpDef>> Read() {
    std::vector<std::string> names;
    do {
      names.push_back(Word());
    } while (Skip(','));
    OpDef op;
    ReadArgs(op.mutable_input_arg());
    if (SkipText("->")) ReadArgs(op.mutable_output_arg());
    while (failure_.empty() && !AtEnd() && Peek() != '|') ReadFlag(&op);
    if (Skip('|')) {
      do {
        ReadAttr(op.add_attr());
      } while (Skip(';'));
    }
    if (!AtEnd()) Fail("the end of the entry");
    if (failure_.empty()) ResolveArgs(&op);
    if (!failure_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("op signature '", text_, "': ", failure_));
    }
    std::vector<OpDef> ops;
    for (const std::string& name : names) {
      op.set_name(name);
      ops.push_back(op);
    }
    return ops;
  }

 private:
  void Fail(absl::string_view wanted) {
    if (failure_.empty()) {
      failure_ = absl::StrCat("expected ", wanted, " before '",
                              rest_.substr(0, 30), "'");
    }
    rest_ = {};
  }

  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }

  char Peek() {
    SkipSpace();
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool SkipText(absl::string_view text) {
    SkipSpace();
    return absl::ConsumePrefix(&rest_, text);
  }

  bool Skip(char c) { return SkipText(absl::string_view(&c, 1)); }

  void Want(char c) {
    if (!Skip(c)) Fail(absl::StrCat("'", absl::string_view(&c, 1), "'"));
  }

  // A name, a number, or a quoted string.
  std::string Word() {
    if (Peek() == '"') return Quoted();
    size_t n = 0;
    while (n < rest_.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(rest_[n])) ||
            rest_[n] == '_' || rest_[n] == '.' || rest_[n] == '-')) {
      ++n;
    }
    if (n == 0) Fail("a word");
    std::string word(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return word;
  }

  std::string Quoted() {
    rest_.remove_prefix(1);
    std::string value;
    while (!rest_.empty() && rest_.front() != '"') {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\\' && !rest_.empty()) {
        c = rest_.front() == 'n'   ? '\n'
            : rest_.front() == 't' ? '\t'
                                   : rest_.front();
        rest_.remove_prefix(1);
      }
      value.push_back(c);
    }
    if (!absl::ConsumePrefix(&rest_, "\"")) Fail("a closing quote");
    return value;
  }

  int64_t Integer() {
    int64_t value = 0;
    if (!absl::SimpleAtoi(Word(), &value)) Fail("an integer");
    return value;
  }

  void ReadArgs(google::protobuf::RepeatedPtrField<OpDef::ArgDef>* args) {
    Want('(');
    if (Skip(')')) return;
    do {
      OpDef::ArgDef* arg = args->Add();
      arg->set_name(Word());
      Want(':');
      if (Skip('&')) arg->set_is_ref(true);
      std::string type = Word();
      if (Skip('*')) {
        arg->set_number_attr(type);
        if (Skip('&')) arg->set_is_ref(true);
        type = Word();
      }
      // Which it is, is known when the attributes have been read.
      arg->set_type_attr(type);
    } while (Skip(','));
    Want(')');
  }

  void ReadFlag(OpDef* op) {
    const std::string flag = Word();
    if (flag == "stateful") {
      op->set_is_stateful(true);
    } else if (flag == "commutative") {
      op->set_is_commutative(true);
    } else if (flag == "aggregate") {
      op->set_is_aggregate(true);
    } else if (flag == "uninitialized") {
      op->set_allows_uninitialized_input(true);
    } else {
      Fail("a known flag");
    }
  }

  void ReadAttr(OpDef::AttrDef* attr) {
    std::string name = Word();
    if (name == "late") {
      // IsLateAttribute looks for this text.
      attr->set_description("late");
      name = Word();
    }
    attr->set_name(name);
    Want(':');
    attr->set_type(Peek() == '{' ? "type" : ReadKind());
    if (Skip('{')) {
      do {
        AddAllowed(*attr, attr->mutable_allowed_values()->mutable_list());
      } while (Skip(','));
      Want('}');
    }
    if (SkipText(">=")) {
      attr->set_has_minimum(true);
      attr->set_minimum(Integer());
    }
    if (Skip('=')) ReadDefault(attr->type(), attr->mutable_default_value());
  }

  std::string ReadKind() {
    std::string kind = Word();
    if (kind == "list") {
      Want('(');
      kind = absl::StrCat("list(", Word(), ")");
      Want(')');
    }
    if (!IsKnownKind(kind)) Fail("a kind of attribute");
    return kind;
  }

  void AddAllowed(const OpDef::AttrDef& attr, AttrValue::ListValue* allowed) {
    const std::string word = Word();
    if (attr.type() != "type") {
      allowed->add_s(word);
      return;
    }
    for (const TypeSet& set : TypeSets()) {
      if (set.name != word) continue;
      for (DataType type : set.types) allowed->add_type(type);
      return;
    }
    const DataType type = TypeFromWord(word);
    if (type == tensorflow::DT_INVALID) Fail("a type or a set of types");
    allowed->add_type(type);
  }

  void ReadDefault(absl::string_view kind, AttrValue* value) {
    if (absl::ConsumePrefix(&kind, "list(")) {
      kind.remove_suffix(1);
      AttrValue::ListValue* list = value->mutable_list();
      Want('[');
      if (Skip(']')) return;
      do {
        AttrValue element;
        ReadDefault(kind, &element);
        if (kind == "string") list->add_s(element.s());
        if (kind == "int") list->add_i(element.i());
        if (kind == "float") list->add_f(element.f());
        if (kind == "bool") list->add_b(element.b());
        if (kind == "type") list->add_type(element.type());
      } while (Skip(','));
      Want(']');
    } else if (kind == "shape") {
      ReadShape(value->mutable_shape());
    } else if (kind == "tensor") {
      ReadTensor(value->mutable_tensor());
    } else {
      ReadScalar(kind, value);
    }
  }

  void ReadScalar(absl::string_view kind, AttrValue* value) {
    const std::string word = Word();
    float f = 0;
    int64_t i = 0;
    if (kind == "string") {
      value->set_s(word);
    } else if (kind == "int" && absl::SimpleAtoi(word, &i)) {
      value->set_i(i);
    } else if (kind == "float" && absl::SimpleAtof(word, &f)) {
      value->set_f(f);
    } else if (kind == "bool" && (word == "true" || word == "false")) {
      value->set_b(word == "true");
    } else if (kind == "type" && TypeFromWord(word) != tensorflow::DT_INVALID) {
      value->set_type(TypeFromWord(word));
    } else {
      Fail(absl::StrCat("a default of kind ", kind));
    }
  }

  void ReadShape(tensorflow::TensorShapeProto* shape) {
    if (Skip('?')) {
      shape->set_unknown_rank(true);
      return;
    }
    Want('[');
    if (Skip(']')) return;
    do {
      shape->add_dim()->set_size(Skip('?') ? -1 : Integer());
    } while (Skip(','));
    Want(']');
  }

  // A vector of small integers: uint8[255, 0].
  void ReadTensor(tensorflow::TensorProto* tensor) {
    tensor->set_dtype(TypeFromWord(Word()));
    if (tensor->dtype() == tensorflow::DT_INVALID) Fail("a tensor's type");
    Want('[');
    do {
      tensor->add_int_val(static_cast<int32_t>(Integer()));
    } while (Skip(','));
    Want(']');
    tensor->mutable_tensor_shape()->add_dim()->set_size(tensor->int_val_size());
  }

  // Decides what each argument's type word was, now that attributes are known.
  void ResolveArgs(OpDef* op) {
    for (auto* args : {op->mutable_input_arg(), op->mutable_output_arg()}) {
      for (OpDef::ArgDef& arg : *args) {
        const std::string word = arg.type_attr();
        const OpDef::AttrDef* attr = FindAttrDef(*op, word);
        if (attr == nullptr) {
          arg.clear_type_attr();
          arg.set_type(TypeFromWord(word));
          if (arg.type() == tensorflow::DT_INVALID) {
            failure_ = absl::StrCat("'", word, "' is no type and no attribute");
          }
        } else if (attr->type() == "list(type)") {
          arg.clear_type_attr();
          arg.set_type_list_attr(word);
        } else if (attr->type() != "type") {
          failure_ = absl::StrCat("attribute '", word, "' is not a type");
        }
        if (arg.number_attr().empty()) continue;
        const OpDef::AttrDef* number = FindAttrDef(*op, arg.number_attr());
        if (number == nullptr || number->type() != "int") {
          failure_ =
              absl::StrCat("'", arg.number_attr(), "' is no int attribute");
        }
      }
    }
  }

  absl::string_view text_;
  absl::string_view rest_;
  std::string failure_;
};

}  // namespace

absl::StatusOr<std::vector<OpDef>> ParseOpSignature(
    absl::string_view names, absl::string_view signature) {
  const std::string text = absl::StrCat(names, signature);
  return EntryReader(text).Read();
}

}  // namespace optfarm::graph
