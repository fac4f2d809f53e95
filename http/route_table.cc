#include "http/route_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "http/field_binding.h"
#include "http/url_text.h"
#include "optfarm/v1/options.pb.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::MethodDescriptor;
using ::google::protobuf::ServiceDescriptor;

std::pair<std::string, std::string> VerbAndPath(const v1::HttpRule& rule) {
  switch (rule.pattern_case()) {
    case v1::HttpRule::kGet:
      return {"GET", rule.get()};
    case v1::HttpRule::kPut:
      return {"PUT", rule.put()};
    case v1::HttpRule::kPost:
      return {"POST", rule.post()};
    case v1::HttpRule::kDelete:
      return {"DELETE", rule.delete_()};
    case v1::HttpRule::kPatch:
      return {"PATCH", rule.patch()};
    case v1::HttpRule::PATTERN_NOT_SET:
      break;
  }
  return {};
}

absl::Status ParsePattern(Route& route) {
  absl::string_view path = route.pattern;
  const auto malformed = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the http option of ", std::string(route.method->full_name()), ": '",
        route.pattern, "' ", why));
  };
  if (!absl::StartsWith(path, "/")) return malformed("does not begin with '/'");
  path.remove_prefix(1);
  const size_t colon = path.rfind(':');
  if (colon != absl::string_view::npos) {
    route.action = std::string(path.substr(colon + 1));
    path = path.substr(0, colon);
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty()) return malformed("has an empty segment");
    Route::Segment segment;
    if (part.front() == '{' && part.back() == '}') {
      segment.field = std::string(part.substr(1, part.size() - 2));
      OPTFARM_RETURN_IF_ERROR(
          CheckField(*route.method->input_type(), segment.field));
    } else {
      segment.literal = std::string(part);
    }
    route.segments.push_back(std::move(segment));
  }
  return absl::OkStatus();
}

absl::Status AddRule(const MethodDescriptor& method, const v1::HttpRule& rule,
                     std::vector<Route>& routes) {
  Route route;
  route.method = &method;
  std::tie(route.verb, route.pattern) = VerbAndPath(rule);
  OPTFARM_RETURN_IF_ERROR(ParsePattern(route));
  route.raw_bytes = rule.raw_bytes();
  if (!rule.body().empty() && rule.body() != "*") {
    return absl::InvalidArgumentError(
        absl::StrCat("the http option of ", method.full_name(),
                     ": body must be '*' or empty, not '", rule.body(), "'"));
  }
  route.json_body = rule.body() == "*";
  for (const std::string& preset : rule.preset()) {
    std::pair<std::string, std::string> field =
        absl::StrSplit(preset, absl::MaxSplits('=', 1));
    OPTFARM_RETURN_IF_ERROR(CheckField(*method.input_type(), field.first));
    route.preset.push_back(std::move(field));
  }
  if (method.client_streaming() && !route.raw_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the http option of ", method.full_name(),
                     ": a client's stream must be raw_bytes"));
  }
  routes.push_back(std::move(route));
  return absl::OkStatus();
}

// The shape that decides whether two patterns answer for the same paths.
std::string Shape(const Route& route) {
  std::string shape = route.verb;
  for (const Route::Segment& segment : route.segments) {
    absl::StrAppend(&shape, "/",
                    segment.field.empty() ? segment.literal : "{}");
  }
  return absl::StrCat(shape, ":", route.action);
}

bool Matches(const Route& route, absl::string_view path,
             std::vector<absl::string_view>& captured) {
  captured.clear();
  if (!absl::StartsWith(path, "/")) return false;
  path.remove_prefix(1);
  if (!route.action.empty()) {
    if (!absl::EndsWith(path, route.action)) return false;
    path.remove_suffix(route.action.size());
    if (!absl::EndsWith(path, ":")) return false;
    path.remove_suffix(1);
  }
  size_t index = 0;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (index == route.segments.size() || part.empty()) return false;
    const Route::Segment& segment = route.segments[index++];
    if (!segment.field.empty()) {
      captured.push_back(part);
    } else if (part != segment.literal) {
      return false;
    }
  }
  return index == route.segments.size();
}

absl::string_view Asked(absl::string_view verb) {
  return verb == "HEAD" ? "GET" : verb;
}

}  // namespace

std::string Route::rpc() const {
  return absl::StrCat("/", method->service()->full_name(), "/", method->name());
}

absl::StatusOr<RouteTable> RouteTable::Make(
    absl::Span<const ServiceDescriptor* const> services) {
  RouteTable table;
  for (const ServiceDescriptor* service : services) {
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor& method = *service->method(i);
      if (!method.options().HasExtension(v1::http)) continue;
      const v1::HttpRule& rule = method.options().GetExtension(v1::http);
      OPTFARM_RETURN_IF_ERROR(AddRule(method, rule, table.routes_));
      for (const v1::HttpRule& more : rule.additional_bindings()) {
        OPTFARM_RETURN_IF_ERROR(AddRule(method, more, table.routes_));
      }
    }
  }
  std::set<std::string> shapes;
  for (const Route& route : table.routes_) {
    if (!shapes.insert(Shape(route)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two methods want ", route.verb, " ", route.pattern,
                       "; one is ", std::string(route.method->full_name())));
    }
  }
  // "/v1/jobs/{job_id}" would take "/v1/jobs/x:cancel" too, and a captured
  // segment would take every literal.
  std::stable_sort(table.routes_.begin(), table.routes_.end(),
                   [](const Route& a, const Route& b) {
                     const auto rank = [](const Route& route) {
                       int fields = 0;
                       for (const auto& segment : route.segments) {
                         fields += segment.field.empty() ? 0 : 1;
                       }
                       return std::make_pair(route.action.empty(), fields);
                     };
                     return rank(a) < rank(b);
                   });
  return table;
}

absl::StatusOr<RouteMatch> RouteTable::Find(absl::string_view verb,
                                            absl::string_view path) const {
  std::vector<absl::string_view> captured;
  bool known = false;
  for (const Route& route : routes_) {
    if (!Matches(route, path, captured)) continue;
    known = true;
    if (route.verb != Asked(verb)) continue;
    RouteMatch match;
    match.route = &route;
    size_t next = 0;
    for (const Route::Segment& segment : route.segments) {
      if (segment.field.empty()) continue;
      OPTFARM_ASSIGN_OR_RETURN(std::string value,
                               PercentDecode(captured[next++], false));
      match.captured.emplace_back(segment.field, std::move(value));
    }
    return match;
  }
  if (known) {
    return absl::UnimplementedError(absl::StrCat(
        "this path takes ", VerbsOf(path), ", not the method that was used"));
  }
  return absl::NotFoundError(
      "there is no such path here; /openapi.json lists those there are");
}

std::string RouteTable::VerbsOf(absl::string_view path) const {
  std::set<std::string> verbs;
  std::vector<absl::string_view> captured;
  for (const Route& route : routes_) {
    if (!Matches(route, path, captured)) continue;
    verbs.insert(route.verb);
    if (route.verb == "GET") verbs.insert("HEAD");
  }
  return absl::StrJoin(verbs, ", ");
}

}  // namespace optfarm::http
