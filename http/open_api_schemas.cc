#include "http/open_api_schemas.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/json_string.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::EnumDescriptor;
using ::google::protobuf::FieldDescriptor;

std::string NameOf(absl::string_view full_name) {
  absl::ConsumePrefix(&full_name, "optfarm.v1.");
  return std::string(full_name);
}

// ,"description":"..." or nothing.
std::string Description(absl::string_view text) {
  return text.empty() ? ""
                      : absl::StrCat(",\"description\":", JsonString(text));
}

// The schema of a type that JSON has words for; "" for others.
std::string OfPlainType(FieldDescriptor::Type type) {
  switch (type) {
    case FieldDescriptor::TYPE_BOOL:
      return R"("type":"boolean")";
    case FieldDescriptor::TYPE_STRING:
      return R"("type":"string")";
    case FieldDescriptor::TYPE_BYTES:
      return R"("type":"string","format":"byte")";
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FLOAT:
      return R"("type":"number","format":"double")";
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SINT64:
    case FieldDescriptor::TYPE_SFIXED64:
      return R"("type":"string","format":"int64")";
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return R"("type":"string","format":"uint64")";
    case FieldDescriptor::TYPE_MESSAGE:
    case FieldDescriptor::TYPE_GROUP:
    case FieldDescriptor::TYPE_ENUM:
      return "";
    default:
      return R"("type":"integer","format":"int32")";
  }
}

}  // namespace

std::string OpenApiReference(absl::string_view kind, absl::string_view name) {
  return absl::StrCat(
      "{\"$ref\":", JsonString(absl::StrCat("#/components/", kind, "/", name)),
      "}");
}

std::string OpenApiSchemas::OfField(const FieldDescriptor& field) {
  if (field.is_map()) {
    return absl::StrCat("{\"type\":\"object\",\"additionalProperties\":",
                        OfOne(*field.message_type()->map_value()), "}");
  }
  if (!field.is_repeated()) return OfOne(field);
  return absl::StrCat("{\"type\":\"array\",\"items\":", OfOne(field), "}");
}

std::string OpenApiSchemas::OfMessage(const Descriptor& type) {
  if (type.full_name() == "google.protobuf.Timestamp") {
    return R"({"type":"string","format":"date-time"})";
  }
  if (type.full_name() == "google.protobuf.Duration") {
    return R"({"type":"string","pattern":"^-?[0-9]+(\\.[0-9]+)?s$"})";
  }
  const std::string name = NameOf(type.full_name());
  // Known before its fields are looked at: a message may contain itself.
  if (schemas_.emplace(name, "").second) schemas_[name] = Object(type);
  return OpenApiReference("schemas", name);
}

std::string OpenApiSchemas::TextOf(const FieldDescriptor& field) const {
  const absl::string_view own = comments_.Of(field.full_name());
  if (!own.empty()) return std::string(own);
  if (field.message_type() != nullptr) {
    return std::string(comments_.Of(field.message_type()->full_name()));
  }
  if (field.enum_type() != nullptr) {
    return std::string(comments_.Of(field.enum_type()->full_name()));
  }
  return "";
}

std::string OpenApiSchemas::Write() const {
  return absl::StrJoin(schemas_, ",", [](std::string* out, const auto& pair) {
    absl::StrAppend(out, JsonString(pair.first), ":", pair.second);
  });
}

std::string OpenApiSchemas::OfEnum(const EnumDescriptor& type) {
  const std::string name = NameOf(type.full_name());
  std::string text(comments_.Of(type.full_name()));
  std::vector<std::string> values;
  for (int i = 0; i < type.value_count(); ++i) {
    const auto& value = *type.value(i);
    values.push_back(JsonString(value.name()));
    const absl::string_view said = comments_.Of(value.full_name());
    if (said.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "\n", "- ",
                    std::string(value.name()), ": ", said);
  }
  schemas_[name] =
      absl::StrCat("{\"type\":\"string\",\"enum\":[",
                   absl::StrJoin(values, ","), "]", Description(text), "}");
  return OpenApiReference("schemas", name);
}

std::string OpenApiSchemas::OfOne(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return OfMessage(*field.message_type());
  if (field.enum_type() != nullptr) return OfEnum(*field.enum_type());
  return absl::StrCat("{", OfPlainType(field.type()), "}");
}

std::string OpenApiSchemas::Property(const FieldDescriptor& field) {
  std::string schema = OfField(field);
  std::string more = Description(TextOf(field));
  if (field.options().deprecated()) {
    absl::StrAppend(&more, ",\"deprecated\":true");
  }
  if (more.empty()) return schema;
  // Nothing may stand beside a reference.
  if (absl::StartsWith(schema, "{\"$ref\"")) {
    schema = absl::StrCat("{\"allOf\":[", schema, "]}");
  }
  schema.pop_back();
  return absl::StrCat(schema, more, "}");
}

std::string OpenApiSchemas::Object(const Descriptor& type) {
  std::vector<std::string> properties;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    properties.push_back(
        absl::StrCat(JsonString(field.name()), ":", Property(field)));
  }
  return absl::StrCat(
      "{\"type\":\"object\"", Description(comments_.Of(type.full_name())),
      ",\"properties\":{", absl::StrJoin(properties, ","), "}}");
}

}  // namespace optfarm::http
