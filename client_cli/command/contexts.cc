#include "client_cli/command/contexts.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "client_cli/tables/json_text.h"
#include "client_cli/tables/table.h"
#include "rpc/trace_parent.h"

namespace optfarm::client_cli {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMaxFileBytes = 1 << 20;

struct Field {
  const char* name;
  std::string FarmAddress::*value;
};
constexpr Field kFields[] = {{"server", &FarmAddress::server},
                             {"token_file", &FarmAddress::token_file},
                             {"tls_ca", &FarmAddress::tls_ca},
                             {"tls_cert", &FarmAddress::tls_cert},
                             {"tls_key", &FarmAddress::tls_key}};

absl::Status NotOurs(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", path,
                   "' is no file of contexts; remove it and set them again "
                   "with optctl config set-context"));
}

std::string TextAt(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

absl::Status NoSuchContext(const std::string& name, const Contexts& contexts) {
  std::vector<std::string> names;
  for (const auto& [known, address] : contexts.by_name) names.push_back(known);
  return UsageError(absl::StrCat(
      "there is no context '", PrintableLine(name), "'",
      names.empty() ? " (optctl config set-context makes one)"
                    : absl::StrCat(NearestNamesHint(name, names),
                                   " (optctl config get-contexts)")));
}

// The context that is to be used, and its name; "" for none.
absl::StatusOr<std::pair<std::string, FarmAddress>> ChosenContext(
    const GlobalFlags& flags, const Environment& environment) {
  std::string name =
      flags.context.empty() ? environment("OPTFARM_CONTEXT") : flags.context;
  const absl::StatusOr<std::string> path = ContextsPath(environment);
  if (!path.ok()) {
    if (name.empty()) return std::make_pair(std::string(), FarmAddress());
    return path.status();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Contexts contexts, LoadContexts(*path));
  if (name.empty()) name = contexts.current;
  if (name.empty()) return std::make_pair(std::string(), FarmAddress());
  const auto found = contexts.by_name.find(name);
  if (found == contexts.by_name.end()) return NoSuchContext(name, contexts);
  return std::make_pair(name, found->second);
}

void SetUnlessEmpty(const std::string& value, std::string* field) {
  if (!value.empty()) *field = value;
}

}  // namespace

std::string ProcessEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::string> ContextsPath(const Environment& environment) {
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty()) {
    const std::string home = environment("HOME");
    if (home.empty()) {
      return absl::FailedPreconditionError(
          "contexts need a folder; set HOME or XDG_CONFIG_HOME");
    }
    folder = JoinPath(home, ".config");
  }
  return JoinPath(JoinPath(folder, "optfarm"), "contexts.json");
}

absl::StatusOr<Contexts> LoadContexts(const std::string& path) {
  if (!Exists(path)) return Contexts();
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxFileBytes));
  const ordered_json json =
      ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return NotOurs(path);
  Contexts contexts;
  contexts.current = TextAt(json, "current");
  const auto all = json.find("contexts");
  if (all == json.end() || !all->is_object()) return NotOurs(path);
  for (const auto& [name, values] : all->items()) {
    if (!values.is_object()) return NotOurs(path);
    FarmAddress& address = contexts.by_name[name];
    for (const Field& field : kFields) {
      address.*field.value = TextAt(values, field.name);
    }
  }
  return contexts;
}

absl::Status SaveContexts(const Contexts& contexts, const std::string& path) {
  ordered_json json;
  json["current"] = contexts.current;
  json["contexts"] = ordered_json::object();
  for (const auto& [name, address] : contexts.by_name) {
    ordered_json& values = json["contexts"][name] = ordered_json::object();
    for (const Field& field : kFields) {
      const std::string& value = address.*field.value;
      if (!value.empty()) values[field.name] = value;
    }
  }
  const mode_t before = ::umask(S_IRWXG | S_IRWXO);
  absl::Status status =
      MakeFolders(std::string(path.substr(0, path.rfind('/'))));
  if (status.ok()) status = WriteFileAtomically(path, JsonText(json));
  ::umask(before);
  if (status.ok() && ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    status = ErrnoToStatus(errno, absl::StrCat("protecting '", path, "'"));
  }
  return status;
}

absl::StatusOr<FarmAddress> FindFarm(const GlobalFlags& flags,
                                     const Environment& environment) {
  const std::string server = !flags.server.empty() ? flags.server
                             : flags.context.empty()
                                 ? environment("OPTFARM_SERVER")
                                 : std::string();
  FarmAddress address;
  if (server.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const auto chosen,
                             ChosenContext(flags, environment));
    address = chosen.second;
  }
  SetUnlessEmpty(server, &address.server);
  if (address.server.empty()) address.server = kDefaultServer;
  if (const std::string token = environment("OPTFARM_TOKEN"); !token.empty()) {
    address.token = token;
    address.token_file.clear();
  }
  if (!flags.token_file.empty()) {
    address.token_file = flags.token_file;
    address.token.clear();
  }
  SetUnlessEmpty(flags.tls_ca, &address.tls_ca);
  SetUnlessEmpty(flags.tls_cert, &address.tls_cert);
  SetUnlessEmpty(flags.tls_key, &address.tls_key);
  // One that is malformed counts as none.
  const std::string parent = environment("TRACEPARENT");
  if (rpc::ParseTraceParent(parent).ok()) address.trace_parent = parent;
  return address;
}

}  // namespace optfarm::client_cli
