#include "http/open_api.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/json_string.h"
#include "http/message.h"
#include "http/open_api_schemas.h"
#include "http/proto_comments.h"
#include "optfarm/v1/options.pb.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::MethodDescriptor;

// Parameters of messages within messages are listed this deep.
constexpr int kParameterDepth = 3;

// Whose comment lists the errors that all methods have.
constexpr char kCommonErrors[] = "optfarm.v1.ModelService";

// Errors by status of HTTP: "NOT_FOUND: there is no such job".
using Errors = std::map<int, std::string>;

struct MethodText {
  std::string summary;
  std::string description;
  Errors errors;
};

absl::StatusCode CodeNamed(absl::string_view name) {
  for (int i = 1; i <= static_cast<int>(absl::StatusCode::kUnauthenticated);
       ++i) {
    const auto code = static_cast<absl::StatusCode>(i);
    if (absl::StatusCodeToString(code) == name) return code;
  }
  return absl::StatusCode::kOk;
}

void AddError(absl::StatusCode code, absl::string_view text, Errors& errors) {
  // Bytes that do not have their SHA-256 are the caller's fault over HTTP.
  const int status =
      code == absl::StatusCode::kDataLoss ? 400 : HttpStatusOf(code);
  std::string& all = errors[status];
  absl::StrAppend(&all, all.empty() ? "" : "\n", absl::StatusCodeToString(code),
                  ": ", text);
}

// What a method's comment says: sentences, then a list of errors whose lines
// are indented and begin with a code's name.
MethodText ReadMethodText(absl::string_view comment) {
  MethodText text;
  std::vector<std::pair<absl::StatusCode, std::string>> errors;
  for (const absl::string_view line : absl::StrSplit(comment, '\n')) {
    if (line.empty() || line.front() != ' ') {
      absl::StrAppend(&text.description, text.description.empty() ? "" : "\n",
                      line);
      continue;
    }
    const absl::string_view item = absl::StripLeadingAsciiWhitespace(line);
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(' ', 1));
    const absl::StatusCode code = CodeNamed(parts.first);
    if (code != absl::StatusCode::kOk) {
      errors.emplace_back(code, absl::StripAsciiWhitespace(parts.second));
    } else if (!errors.empty()) {
      absl::StrAppend(&errors.back().second, " ", item);
    }
  }
  for (const auto& [code, said] : errors) AddError(code, said, text.errors);
  text.summary = text.description.substr(
      0, std::min(text.description.find(". "), text.description.find(": ")));
  if (!text.summary.empty() && text.summary.back() == '.') {
    text.summary.pop_back();
  }
  return text;
}

std::string Content(absl::string_view type, absl::string_view schema) {
  return absl::StrCat("{", JsonString(type), ":{\"schema\":", schema, "}}");
}

std::string Response(int status, absl::string_view description,
                     absl::string_view content) {
  return absl::StrCat("\"", status,
                      "\":{\"description\":", JsonString(description),
                      ",\"content\":", content, "}");
}

std::string ErrorResponse(int status, absl::string_view description) {
  return Response(status, description,
                  Content("application/problem+json",
                          OpenApiReference("schemas", "Problem")));
}

class Operation {
 public:
  Operation(const Route& route, int number, const ProtoComments& comments,
            OpenApiSchemas& schemas)
      : route_(route),
        method_(*route.method),
        number_(number),
        comments_(comments),
        text_(ReadMethodText(comments.Of(method_.full_name()))),
        schemas_(schemas) {}

  std::string Write() {
    AddParameters();
    std::string json = absl::StrCat(
        "{\"operationId\":", JsonString(Id()),
        ",\"summary\":", JsonString(Summary()),
        ",\"description\":", JsonString(text_.description), ",\"tags\":[",
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
    absl::StrAppend(&json, ",\"responses\":{", Responses(), ",", Errors(),
                    ",\"default\":{\"description\":\"An error (RFC 9457)\","
                    "\"content\":",
                    Content("application/problem+json",
                            OpenApiReference("schemas", "Problem")),
                    "}}}");
    return json;
  }

 private:
  static constexpr char kBinary[] = R"({"type":"string","format":"binary"})";
  static constexpr char kUnchanged[] = R"("304":{"description":"Unchanged"})";

  std::string Id() const {
    const std::string id =
        absl::StrCat(method_.service()->name(), "_", method_.name());
    return number_ > 0 ? absl::StrCat(id, "_", number_ + 1) : id;
  }

  // Two ways to call one method differ in more than their path.
  std::string Summary() const {
    std::vector<std::string> preset;
    for (const auto& [field, value] : route_.preset) {
      preset.push_back(absl::StrCat(field, "=", value));
    }
    return preset.empty() ? text_.summary
                          : absl::StrCat(text_.summary, " (",
                                         absl::StrJoin(preset, ", "), ")");
  }

  std::string Responses() {
    if (method_.client_streaming()) {
      const std::string content = Content(
          "application/json", schemas_.OfMessage(*method_.output_type()));
      return absl::StrCat(Response(200, "It was here already", content), ",",
                          Response(201, "The file is complete", content), ",",
                          Response(202, "The part is kept", content));
    }
    if (route_.raw_bytes) {
      const std::string content = Content("application/octet-stream", kBinary);
      return absl::StrCat(Response(200, "The whole file", content), ",",
                          Response(206, "The range asked for", content), ",",
                          kUnchanged);
    }
    const std::string answer = schemas_.OfMessage(*method_.output_type());
    if (method_.server_streaming()) {
      return Response(200,
                      "Server-sent events; the schema is that of their data",
                      Content("text/event-stream", answer));
    }
    const std::string whole =
        Response(200, "The answer", Content("application/json", answer));
    return route_.verb == "GET" ? absl::StrCat(whole, ",", kUnchanged) : whole;
  }

  // Those of the method, and references to those that all methods have.
  std::string Errors() const {
    const http::Errors common =
        ReadMethodText(comments_.Of(kCommonErrors)).errors;
    std::vector<std::string> items;
    for (const auto& [status, said] : text_.errors) {
      const auto also = common.find(status);
      items.push_back(
          ErrorResponse(status, also == common.end()
                                    ? said
                                    : absl::StrCat(said, "\n", also->second)));
    }
    for (const auto& [status, said] : common) {
      if (text_.errors.count(status) > 0) continue;
      items.push_back(absl::StrCat(
          "\"", status,
          "\":", OpenApiReference("responses", absl::StrCat("Error", status))));
    }
    return absl::StrJoin(items, ",");
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
                    absl::string_view text, absl::string_view schema) {
    std::string json =
        absl::StrCat("{\"name\":", JsonString(name), ",\"in\":\"", in,
                     "\",\"required\":", required ? "true" : "false");
    if (!text.empty()) {
      absl::StrAppend(&json, ",\"description\":", JsonString(text));
    }
    parameters_.push_back(absl::StrCat(json, ",\"schema\":", schema, "}"));
  }

  void AddHeader(absl::string_view name, absl::string_view text) {
    AddParameter(name, "header", false, text, R"({"type":"string"})");
  }

  // What is said about the field at "digest.sha256".
  std::string TextOfField(absl::string_view path) const {
    const Descriptor* type = method_.input_type();
    std::string text;
    for (const absl::string_view name : absl::StrSplit(path, '.')) {
      const FieldDescriptor* const field =
          type == nullptr ? nullptr : type->FindFieldByName(std::string(name));
      if (field == nullptr) return "";
      text = schemas_.TextOf(*field);
      type = field->message_type();
    }
    return text;
  }

  void AddParameters() {
    std::set<std::string> taken;
    for (const Route::Segment& segment : route_.segments) {
      if (segment.field.empty()) continue;
      AddParameter(segment.field, "path", true, TextOfField(segment.field),
                   R"({"type":"string"})");
      taken.insert(segment.field);
    }
    for (const auto& [field, value] : route_.preset) taken.insert(field);
    if (method_.input_type()->FindFieldByName("client_request_id") != nullptr) {
      AddHeader("Idempotency-Key", TextOfField("client_request_id"));
    }
    if (method_.client_streaming()) {
      AddHeader("Content-Range",
                "Which part of the file the body is: \"bytes 0-999/3000\". "
                "Without it the body is the whole file.");
      return;
    }
    if (route_.raw_bytes) {
      AddHeader("Range", "The part that is wanted: \"bytes=0-999\".");
      AddHeader("If-None-Match",
                "The SHA-256 in quotation marks: nothing is sent when it is "
                "that of the file.");
      return;
    }
    if (route_.verb == "GET" && !method_.server_streaming()) {
      AddHeader("If-None-Match",
                "The ETag of an earlier answer: nothing is sent when this one "
                "is the same.");
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
        AddParameter(name, "query", false, schemas_.TextOf(field),
                     schemas_.OfField(field));
      } else if (!field.is_repeated() && depth > 1) {
        AddQuery(*message, absl::StrCat(name, "."), depth - 1, taken);
      }
    }
  }

  const Route& route_;
  const MethodDescriptor& method_;
  const int number_;
  const ProtoComments& comments_;
  const MethodText text_;
  OpenApiSchemas& schemas_;
  std::vector<std::string> parameters_;
};

constexpr char kProblem[] =
    R"("Problem":{"type":"object","description":"An error (RFC 9457).",)"
    R"("properties":{)"
    R"("type":{"type":"string","description":"Always about:blank."},)"
    R"("title":{"type":"string","description":"The status in words."},)"
    R"("status":{"type":"integer","description":"The status of HTTP."},)"
    R"("detail":{"type":"string","description":"For people: what was being )"
    R"(done, what was wrong with which value, what to do."},)"
    R"("code":{"type":"string","description":"The canonical code, for )"
    R"(programs: NOT_FOUND."},)"
    R"("details":{"type":"array","items":{"type":"object"},"description":)"
    R"("Messages that some errors carry, each with its type in @type."}},)"
    R"("required":["title","status"]})";

// Services as tags: what the heads of their files say.
std::string Tags(const RouteTable& routes, const ProtoComments& comments) {
  std::map<std::string, std::string> tags;
  for (const Route& route : routes.routes()) {
    const auto& service = *route.method->service();
    tags[service.name()] = absl::StrCat(
        "{\"name\":", JsonString(service.name()), ",\"description\":",
        JsonString(comments.OfServicesFile(service.full_name())), "}");
  }
  return absl::StrJoin(tags, ",", [](std::string* out, const auto& tag) {
    absl::StrAppend(out, tag.second);
  });
}

std::string CommonResponses(const ProtoComments& comments) {
  std::vector<std::string> items;
  for (const auto& [status, said] :
       ReadMethodText(comments.Of(kCommonErrors)).errors) {
    // "Error401" in place of "401".
    items.push_back(
        absl::StrCat("\"Error", ErrorResponse(status, said).substr(1)));
  }
  return absl::StrJoin(items, ",");
}

std::string Paths(const RouteTable& routes, const ProtoComments& comments,
                  OpenApiSchemas& schemas) {
  std::map<std::string, std::map<std::string, std::string>> paths;
  std::map<const MethodDescriptor*, int> numbers;
  for (const Route& route : routes.routes()) {
    paths[route.pattern][absl::AsciiStrToLower(route.verb)] =
        Operation(route, numbers[route.method]++, comments, schemas).Write();
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
  return absl::StrJoin(items, ",");
}

}  // namespace

std::string MakeOpenApi(const RouteTable& routes, absl::string_view version) {
  const ProtoComments comments(ProtoDescriptors());
  OpenApiSchemas schemas(comments);
  const std::string paths = Paths(routes, comments, schemas);
  return absl::StrCat(
      R"({"openapi":"3.0.3","info":{"title":"Optfarm","version":)",
      JsonString(version),
      R"(,"description":"Jobs that make models smaller and faster, measured )",
      R"(on devices.","license":{"name":"Apache-2.0","url":)",
      R"("https://www.apache.org/licenses/LICENSE-2.0"}},)",
      R"("servers":[{"url":"/"}],)",
      R"("security":[{},{"bearer":[]}],"tags":[)", Tags(routes, comments),
      R"(],"paths":{)", paths,
      R"(},"components":{"securitySchemes":{"bearer":{"type":"http",)",
      R"("scheme":"bearer"}},"responses":{)", CommonResponses(comments),
      R"(},"schemas":{)", kProblem, ",", schemas.Write(), "}}}\n");
}

}  // namespace optfarm::http
