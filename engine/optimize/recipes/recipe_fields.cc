#include "engine/optimize/recipes/recipe_fields.h"

#include <yaml-cpp/yaml.h>

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"

namespace optfarm::optimize {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status WrongType(const YAML::Node& node, const std::string& path,
                       absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      AtLine(node), path, " must be ", want,
      node.IsScalar() ? absl::StrCat(", not '", node.Scalar(), "'") : ""));
}

// Enum values of the message without the _UNSPECIFIED one, in lower case.
std::vector<std::string> EnumNames(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() == 0) continue;
    names.push_back(absl::AsciiStrToLower(type->value(i)->name()));
  }
  return names;
}

absl::Status ReadEnum(const YAML::Node& node, const std::string& path,
                      const FieldDescriptor* field, Message* message) {
  const EnumValueDescriptor* value =
      field->enum_type()->FindValueByName(absl::AsciiStrToUpper(node.Scalar()));
  if (value == nullptr || value->number() == 0) {
    return WrongType(
        node, path,
        absl::StrCat("one of ",
                     absl::StrJoin(EnumNames(field->enum_type()), ", ")));
  }
  message->GetReflection()->SetEnum(message, field, value);
  return absl::OkStatus();
}

// Sets a scalar field, or adds to a repeated one.
absl::Status ReadScalar(const YAML::Node& node, const std::string& path,
                        const FieldDescriptor* field, Message* message) {
  if (!node.IsScalar()) return WrongType(node, path, "one plain value");
  const Reflection* reflection = message->GetReflection();
  const std::string& text = node.Scalar();
  const bool add = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      add ? reflection->AddString(message, field, text)
          : reflection->SetString(message, field, text);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(text, &value)) {
        return WrongType(node, path, "a number");
      }
      add ? reflection->AddDouble(message, field, value)
          : reflection->SetDouble(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) {
        return WrongType(node, path, "a whole number");
      }
      reflection->SetInt32(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) {
        return WrongType(node, path, "a whole number, 0 or more");
      }
      reflection->SetUInt64(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") {
        return WrongType(node, path, "true or false");
      }
      reflection->SetBool(message, field, text == "true");
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM:
      return ReadEnum(node, path, field, message);
    default:
      return absl::InternalError(
          absl::StrCat("recipe field ", path, " has a type without a reader"));
  }
}

absl::Status ReadField(const YAML::Node& node, const std::string& path,
                       const FieldDescriptor* field, Message* message,
                       FieldLines* lines) {
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const Reflection* reflection = message->GetReflection();
  if (is_message && !field->is_repeated()) {
    return ReadFields(node, path + ".", "",
                      reflection->MutableMessage(message, field), lines);
  }
  if (!field->is_repeated()) return ReadScalar(node, path, field, message);
  // One value may stand for a list of one.
  if (node.IsScalar() && !is_message)
    return ReadScalar(node, path, field, message);
  if (!node.IsSequence()) return WrongType(node, path, "a list");
  for (const YAML::Node& item : node) {
    OPTFARM_RETURN_IF_ERROR(
        is_message ? ReadFields(item, path + ".", "",
                                reflection->AddMessage(message, field), lines)
                   : ReadScalar(item, path, field, message));
  }
  return absl::OkStatus();
}

// A scalar field's value; element `index` of a repeated one.
void WriteScalar(const Message& message, const FieldDescriptor* field,
                 int index, YAML::Emitter* out) {
  const Reflection* reflection = message.GetReflection();
  const bool list = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      *out << (list ? reflection->GetRepeatedString(message, field, index)
                    : reflection->GetString(message, field));
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value =
          list ? reflection->GetRepeatedDouble(message, field, index)
               : reflection->GetDouble(message, field);
      // The shortest text that reads back as the same number.
      std::string text = absl::StrCat(value);
      double read = 0;
      if (!absl::SimpleAtod(text, &read) || read != value) {
        *out << value;
      } else {
        *out << text;
      }
      return;
    }
    case FieldDescriptor::CPPTYPE_INT32:
      *out << reflection->GetInt32(message, field);
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      *out << reflection->GetUInt64(message, field);
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      *out << reflection->GetBool(message, field);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      *out << absl::AsciiStrToLower(
          reflection->GetEnum(message, field)->name());
      return;
    default:
      return;
  }
}

}  // namespace

std::string AtLine(const YAML::Node& node) {
  const int line = node.Mark().line;
  return line < 0 ? "" : absl::StrCat("line ", line + 1, ": ");
}

absl::Status ReadFields(const YAML::Node& map, const std::string& path,
                        absl::string_view elsewhere, Message* message,
                        FieldLines* lines) {
  if (!map.IsMap()) {
    return WrongType(map, path.empty() ? "the recipe" : path,
                     "a map of keys and values");
  }
  const auto* type = message->GetDescriptor();
  std::set<std::string> seen;
  for (const auto& entry : map) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(AtLine(entry.first), path, key, " is given twice"));
    }
    const FieldDescriptor* field = type->FindFieldByName(key);
    if (field == nullptr) {
      std::vector<std::string> known;
      for (int i = 0; i < type->field_count(); ++i) {
        known.push_back(type->field(i)->name());
      }
      return absl::InvalidArgumentError(absl::StrCat(
          AtLine(entry.first), "'", path, key, "' is not a key of recipes",
          NearestNamesHint(key, known), "; known here are ",
          absl::StrJoin(known, ", ")));
    }
    (*lines)[path + key] = entry.first.Mark().line + 1;
    if (key == elsewhere) continue;
    OPTFARM_RETURN_IF_ERROR(
        ReadField(entry.second, path + key, field, message, lines));
  }
  return absl::OkStatus();
}

void WriteFields(const Message& message, absl::string_view elsewhere,
                 YAML::Emitter* out) {
  std::vector<const FieldDescriptor*> fields;
  const Reflection* reflection = message.GetReflection();
  reflection->ListFields(message, &fields);
  const auto write_message = [out](const Message& child) {
    *out << YAML::BeginMap;
    WriteFields(child, "", out);
    *out << YAML::EndMap;
  };
  for (const FieldDescriptor* field : fields) {
    if (field->name() == elsewhere) continue;
    *out << YAML::Key << field->name() << YAML::Value;
    const bool is_message =
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!field->is_repeated()) {
      is_message ? write_message(reflection->GetMessage(message, field))
                 : WriteScalar(message, field, 0, out);
      continue;
    }
    *out << YAML::BeginSeq;
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      is_message
          ? write_message(reflection->GetRepeatedMessage(message, field, i))
          : WriteScalar(message, field, i, out);
    }
    *out << YAML::EndSeq;
  }
}

}  // namespace optfarm::optimize
