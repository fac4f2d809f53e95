#include "http/field_binding.h"

#include <google/protobuf/descriptor.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json_string.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "http/json.h"
#include "http/url_text.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

constexpr size_t kMaxParameters = 200;
constexpr size_t kMaxDepth = 16;
constexpr size_t kQuotedBytes = 100;

std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kQuotedBytes)), "'");
}

// A message that JSON writes as one string.
bool HasTextForm(const Descriptor& type) {
  return type.full_name() == "google.protobuf.Timestamp" ||
         type.full_name() == "google.protobuf.Duration";
}

absl::StatusOr<const FieldDescriptor*> FindIn(const Descriptor& type,
                                              absl::string_view name) {
  const std::string key(name);
  const FieldDescriptor* field = type.FindFieldByName(key);
  if (field == nullptr) field = type.FindFieldByCamelcaseName(key);
  if (field != nullptr) return field;
  std::vector<std::string> known;
  for (int i = 0; i < type.field_count(); ++i) {
    known.push_back(type.field(i)->name());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no parameter ", Shown(name), " in ", type.name(),
                   NearestNamesHint(name, known)));
}

// The fields from the outermost message to the one that is meant.
absl::StatusOr<std::vector<const FieldDescriptor*>> Resolve(
    const Descriptor& type, absl::string_view path) {
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* at = &type;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (at == nullptr || fields.size() == kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", Shown(path), " goes deeper than ", type.name()));
    }
    OPTFARM_ASSIGN_OR_RETURN(const FieldDescriptor* field, FindIn(*at, name));
    if (!fields.empty() && fields.back()->is_repeated()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", Shown(path), " leads through a list; send a body"));
    }
    fields.push_back(field);
    at = field->message_type();
  }
  if (at != nullptr && !HasTextForm(*at)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", Shown(path),
        " is a message; name one of its fields, as in ", path, ".FIELD"));
  }
  return fields;
}

absl::Status BadValue(const FieldDescriptor& field, absl::string_view value,
                      absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "parameter '", field.name(), "' is ", Shown(value), ", not ", wanted));
}

template <typename Number, typename Set, typename Add>
absl::Status SetNumber(const FieldDescriptor& field, absl::string_view text,
                       absl::string_view wanted,
                       bool (*parse)(absl::string_view, Number*), Set set,
                       Add add) {
  Number number{};
  if (!parse(text, &number)) return BadValue(field, text, wanted);
  if (field.is_repeated()) {
    add(number);
  } else {
    set(number);
  }
  return absl::OkStatus();
}

absl::Status SetEnum(const FieldDescriptor& field, absl::string_view text,
                     Message* message) {
  const Reflection& reflection = *message->GetReflection();
  const auto* value = field.enum_type()->FindValueByName(std::string(text));
  int number = 0;
  if (value == nullptr && absl::SimpleAtoi(text, &number)) {
    value = field.enum_type()->FindValueByNumber(number);
  }
  if (value == nullptr) {
    return BadValue(field, text, absl::StrCat("a ", field.enum_type()->name()));
  }
  if (field.is_repeated()) {
    reflection.AddEnum(message, &field, value);
  } else {
    reflection.SetEnum(message, &field, value);
  }
  return absl::OkStatus();
}

absl::Status SetMessage(const FieldDescriptor& field, absl::string_view text,
                        Message* message) {
  const Reflection& reflection = *message->GetReflection();
  Message* part = field.is_repeated()
                      ? reflection.AddMessage(message, &field)
                      : reflection.MutableMessage(message, &field);
  if (FromJson(JsonString(text), rpc::MessageBounds(), part).ok())
    return absl::OkStatus();
  return BadValue(field, text,
                  field.message_type()->name() == "Duration"
                      ? "a duration such as 1.5s"
                      : "a time such as 2026-01-31T12:00:00Z");
}

#define OPTFARM_NUMBER(Type, Name, parse, wanted)                \
  return SetNumber<Type>(                                        \
      field, text, wanted, parse,                                \
      [&](Type v) { reflection.Set##Name(message, &field, v); }, \
      [&](Type v) { reflection.Add##Name(message, &field, v); })

absl::Status SetOne(const FieldDescriptor& field, absl::string_view text,
                    Message* message) {
  const Reflection& reflection = *message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      OPTFARM_NUMBER(int32_t, Int32, absl::SimpleAtoi<int32_t>, "an integer");
    case FieldDescriptor::CPPTYPE_INT64:
      OPTFARM_NUMBER(int64_t, Int64, absl::SimpleAtoi<int64_t>, "an integer");
    case FieldDescriptor::CPPTYPE_UINT32:
      OPTFARM_NUMBER(uint32_t, UInt32, absl::SimpleAtoi<uint32_t>,
                     "an integer from 0");
    case FieldDescriptor::CPPTYPE_UINT64:
      OPTFARM_NUMBER(uint64_t, UInt64, absl::SimpleAtoi<uint64_t>,
                     "an integer from 0");
    case FieldDescriptor::CPPTYPE_DOUBLE:
      OPTFARM_NUMBER(double, Double, absl::SimpleAtod, "a number");
    case FieldDescriptor::CPPTYPE_FLOAT:
      OPTFARM_NUMBER(float, Float, absl::SimpleAtof, "a number");
    case FieldDescriptor::CPPTYPE_BOOL:
      OPTFARM_NUMBER(bool, Bool, absl::SimpleAtob, "true or false");
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(field, text, message);
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.is_repeated()) {
        reflection.AddString(message, &field, std::string(text));
      } else {
        reflection.SetString(message, &field, std::string(text));
      }
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return SetMessage(field, text, message);
  }
  return absl::InternalError("a type of field that did not exist");
}

#undef OPTFARM_NUMBER

}  // namespace

absl::Status CheckField(const Descriptor& type, absl::string_view path) {
  return Resolve(type, path).status();
}

absl::Status SetField(absl::string_view path, absl::string_view value,
                      Message* message) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<const FieldDescriptor*> fields,
                           Resolve(*message->GetDescriptor(), path));
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, fields[i]);
  }
  return SetOne(*fields.back(), value, message);
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseQuery(
    absl::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  if (query.empty()) return parameters;
  for (const absl::string_view part : absl::StrSplit(query, '&')) {
    if (part.empty()) continue;
    if (parameters.size() == kMaxParameters) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the address has more than ", kMaxParameters, " parameters"));
    }
    const size_t equals = std::min(part.find('='), part.size());
    OPTFARM_ASSIGN_OR_RETURN(std::string name,
                             PercentDecode(part.substr(0, equals), true));
    OPTFARM_ASSIGN_OR_RETURN(
        std::string value,
        PercentDecode(part.substr(std::min(equals + 1, part.size())), true));
    parameters.emplace_back(std::move(name), std::move(value));
  }
  return parameters;
}

}  // namespace optfarm::http
