#include "http/open_api.h"

#include <google/protobuf/descriptor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_string.h"
#include "optfarm/v1/options.pb.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::EnumDescriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::MethodDescriptor;

// Parameters of messages within messages are listed this deep.
constexpr int kParameterDepth = 3;

std::string Reference(absl::string_view name) {
  return absl::StrCat(
      "{\"$ref\":", JsonString(absl::StrCat("#/components/schemas/", name)),
      "}");
}

// Schemas of messages and enums, gathered while paths are written.
class Schemas {
 public:
  std::string OfField(const FieldDescriptor& field) {
    if (field.is_map()) {
      return absl::StrCat("{\"type\":\"object\",\"additionalProperties\":",
                          OfOne(*field.message_type()->map_value()), "}");
    }
    if (!field.is_repeated()) return OfOne(field);
    return absl::StrCat("{\"type\":\"array\",\"items\":", OfOne(field), "}");
  }

  std::string OfMessage(const Descriptor& type) {
    if (type.full_name() == "google.protobuf.Timestamp") {
      return R"({"type":"string","format":"date-time"})";
    }
    if (type.full_name() == "google.protobuf.Duration") {
      return R"({"type":"string","pattern":"^-?[0-9]+(\\.[0-9]+)?s$"})";
    }
    const std::string name = NameOf(type.full_name());
    // Known before its fields are looked at: a message may contain itself.
    if (schemas_.emplace(name, "").second) schemas_[name] = Properties(type);
    return Reference(name);
  }

  std::string Write() const {
    return absl::StrJoin(schemas_, ",", [](std::string* out, const auto& pair) {
      absl::StrAppend(out, JsonString(pair.first), ":", pair.second);
    });
  }

 private:
  static std::string NameOf(absl::string_view full_name) {
    const absl::string_view package = "optfarm.v1.";
    if (full_name.substr(0, package.size()) == package) {
      full_name.remove_prefix(package.size());
    }
    return std::string(full_name);
  }

  std::string OfEnum(const EnumDescriptor& type) {
    const std::string name = NameOf(type.full_name());
    std::vector<std::string> values;
    for (int i = 0; i < type.value_count(); ++i) {
      values.push_back(JsonString(type.value(i)->name()));
    }
    schemas_[name] = absl::StrCat("{\"type\":\"string\",\"enum\":[",
                                  absl::StrJoin(values, ","), "]}");
    return Reference(name);
  }

  std::string OfOne(const FieldDescriptor& field) {
    switch (field.type()) {
      case FieldDescriptor::TYPE_MESSAGE:
      case FieldDescriptor::TYPE_GROUP:
        return OfMessage(*field.message_type());
      case FieldDescriptor::TYPE_ENUM:
        return OfEnum(*field.enum_type());
      case FieldDescriptor::TYPE_BOOL:
        return R"({"type":"boolean"})";
      case FieldDescriptor::TYPE_STRING:
        return R"({"type":"string"})";
      case FieldDescriptor::TYPE_BYTES:
        return R"({"type":"string","format":"byte"})";
      case FieldDescriptor::TYPE_DOUBLE:
      case FieldDescriptor::TYPE_FLOAT:
        return R"({"type":"number","format":"double"})";
      case FieldDescriptor::TYPE_INT64:
      case FieldDescriptor::TYPE_SINT64:
      case FieldDescriptor::TYPE_SFIXED64:
        return R"({"type":"string","format":"int64"})";
      case FieldDescriptor::TYPE_UINT64:
      case FieldDescriptor::TYPE_FIXED64:
        return R"({"type":"string","format":"uint64"})";
      default:
        return R"({"type":"integer","format":"int32"})";
    }
  }

  std::string Properties(const Descriptor& type) {
    std::vector<std::string> properties;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      std::string schema = OfField(field);
      if (field.options().deprecated()) {
        schema = absl::StrCat("{\"deprecated\":true,\"allOf\":[", schema, "]}");
      }
      properties.push_back(absl::StrCat(JsonString(field.name()), ":", schema));
    }
    return absl::StrCat("{\"type\":\"object\",\"properties\":{",
                        absl::StrJoin(properties, ","), "}}");
  }

  std::map<std::string, std::string> schemas_;
};

class Operation {
 public:
  Operation(const Route& route, int number, Schemas& schemas)
      : route_(route),
        method_(*route.method),
        number_(number),
        schemas_(schemas) {}

  std::string Write() {
    std::string id =
        absl::StrCat(method_.service()->name(), "_", method_.name());
    if (number_ > 0) absl::StrAppend(&id, "_", number_ + 1);
    AddParameters();
    std::string json = absl::StrCat(
        "{\"operationId\":", JsonString(id), ",\"tags\":[",
        JsonString(method_.service()->name()), "],\"x-optfarm-scopes\":[",
        Scopes(), "],\"parameters\":[", absl::StrJoin(parameters_, ","), "]");
    if (route_.json_body) {
      absl::StrAppend(&json, ",\"requestBody\":{\"required\":true,\"content\":",
                      Content("application/json",
                              schemas_.OfMessage(*method_.input_type())),
                      "}");
    } else if (method_.client_streaming()) {
      absl::StrAppend(&json, ",\"requestBody\":{\"required\":true,\"content\":",
                      Content("application/octet-stream", kBinary), "}");
    }
    absl::StrAppend(&json, ",\"responses\":{", Responses(),
                    ",\"default\":{\"description\":\"An error (RFC 9457)\","
                    "\"content\":",
                    Content("application/problem+json", Reference("Problem")),
                    "}}}");
    return json;
  }

 private:
  static constexpr char kBinary[] = R"({"type":"string","format":"binary"})";

  static std::string Content(absl::string_view type, absl::string_view schema) {
    return absl::StrCat("{", JsonString(type), ":{\"schema\":", schema, "}}");
  }

  std::string Response(int status, absl::string_view description,
                       absl::string_view content) {
    return absl::StrCat("\"", status,
                        "\":{\"description\":", JsonString(description),
                        ",\"content\":", content, "}");
  }

  std::string Responses() {
    const std::string answer = schemas_.OfMessage(*method_.output_type());
    if (method_.client_streaming()) {
      const std::string content = Content("application/json", answer);
      return absl::StrCat(Response(200, "It was here already", content), ",",
                          Response(201, "The file is complete", content), ",",
                          Response(202, "The part is kept", content));
    }
    if (route_.raw_bytes) {
      const std::string content = Content("application/octet-stream", kBinary);
      return absl::StrCat(Response(200, "The whole file", content), ",",
                          Response(206, "The range asked for", content), ",",
                          "\"304\":{\"description\":\"Unchanged\"}");
    }
    if (method_.server_streaming()) {
      return absl::StrCat(
          Response(200,
                   absl::StrCat("Server-sent events; the data of each is a ",
                                std::string(method_.output_type()->name())),
                   Content("text/event-stream", R"({"type":"string"})")));
    }
    return Response(200, "The answer", Content("application/json", answer));
  }

  std::string Scopes() const {
    std::vector<std::string> names;
    for (int i = 0; i < method_.options().ExtensionSize(v1::scopes); ++i) {
      names.push_back(JsonString(absl::AsciiStrToLower(v1::Access::Scope_Name(
          method_.options().GetExtension(v1::scopes, i)))));
    }
    if (names.empty()) names.push_back("\"admin\"");
    return absl::StrJoin(names, ",");
  }

  void AddParameter(absl::string_view name, absl::string_view in, bool required,
                    const std::string& schema) {
    parameters_.push_back(absl::StrCat(
        "{\"name\":", JsonString(name), ",\"in\":\"", in, "\",\"required\":",
        required ? "true" : "false", ",\"schema\":", schema, "}"));
  }

  void AddParameters() {
    std::set<std::string> taken;
    for (const Route::Segment& segment : route_.segments) {
      if (segment.field.empty()) continue;
      AddParameter(segment.field, "path", true, R"({"type":"string"})");
      taken.insert(segment.field);
    }
    for (const auto& [field, value] : route_.preset) taken.insert(field);
    if (method_.input_type()->FindFieldByName("client_request_id") != nullptr) {
      AddParameter("Idempotency-Key", "header", false, R"({"type":"string"})");
    }
    if (method_.client_streaming()) {
      AddParameter("Content-Range", "header", false, R"({"type":"string"})");
      return;
    }
    if (route_.raw_bytes) {
      AddParameter("Range", "header", false, R"({"type":"string"})");
      AddParameter("If-None-Match", "header", false, R"({"type":"string"})");
      return;
    }
    if (!route_.json_body) {
      AddQuery(*method_.input_type(), "", kParameterDepth, taken);
    }
  }

  void AddQuery(const Descriptor& type, const std::string& prefix, int depth,
                const std::set<std::string>& taken) {
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const std::string name = absl::StrCat(prefix, field.name());
      if (taken.count(name) > 0) continue;
      const Descriptor* message = field.message_type();
      const bool has_text =
          message == nullptr ||
          message->full_name() == "google.protobuf.Timestamp" ||
          message->full_name() == "google.protobuf.Duration";
      if (has_text) {
        AddParameter(name, "query", false, schemas_.OfField(field));
      } else if (!field.is_repeated() && depth > 1) {
        AddQuery(*message, absl::StrCat(name, "."), depth - 1, taken);
      }
    }
  }

  const Route& route_;
  const MethodDescriptor& method_;
  const int number_;
  Schemas& schemas_;
  std::vector<std::string> parameters_;
};

constexpr char kProblem[] =
    R"("Problem":{"type":"object","properties":{"type":{"type":"string"},)"
    R"("title":{"type":"string"},"status":{"type":"integer"},)"
    R"("detail":{"type":"string"},"code":{"type":"string"},)"
    R"("details":{"type":"array","items":{"type":"object"}}},)"
    R"("required":["title","status"]})";

}  // namespace

std::string MakeOpenApi(const RouteTable& routes, absl::string_view version) {
  Schemas schemas;
  std::map<std::string, std::map<std::string, std::string>> paths;
  std::map<const MethodDescriptor*, int> numbers;
  for (const Route& route : routes.routes()) {
    paths[route.pattern][absl::AsciiStrToLower(route.verb)] =
        Operation(route, numbers[route.method]++, schemas).Write();
  }
  std::vector<std::string> items;
  for (const auto& [path, verbs] : paths) {
    items.push_back(
        absl::StrCat(JsonString(path), ":{",
                     absl::StrJoin(verbs, ",",
                                   [](std::string* out, const auto& verb) {
                                     absl::StrAppend(out, "\"", verb.first,
                                                     "\":", verb.second);
                                   }),
                     "}"));
  }
  return absl::StrCat(
      R"({"openapi":"3.0.3","info":{"title":"Optfarm","version":)",
      JsonString(version),
      R"(,"license":{"name":"Apache-2.0"}},"servers":[{"url":"/"}],)",
      R"("security":[{},{"bearer":[]}],"paths":{)", absl::StrJoin(items, ","),
      R"(},"components":{"securitySchemes":{"bearer":{"type":"http",)",
      R"("scheme":"bearer"}},"schemas":{)", kProblem, ",", schemas.Write(),
      "}}}\n");
}

}  // namespace optfarm::http
