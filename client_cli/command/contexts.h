// Named servers: where each is and which files to bring along. Kept in
// $XDG_CONFIG_HOME/optfarm/contexts.json, else ~/.config/optfarm; secrets are
// named by their path, never kept there.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_CONTEXTS_H_
#define OPTFARM_CLIENT_CLI_COMMAND_CONTEXTS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_cli/command/command.h"
#include "client_cli/command/farm_client.h"

namespace optfarm::client_cli {

// Without --server, environment and context.
inline constexpr char kDefaultServer[] = "127.0.0.1:7070";

struct Contexts {
  // The one that is used; "" for none.
  std::string current;
  // By name; tokens are empty.
  std::map<std::string, FarmAddress> by_name;
};

// A variable of the environment; "" when it is not set.
using Environment = std::function<std::string(const char* name)>;
std::string ProcessEnvironment(const char* name);

// ERRORS: FailedPrecondition without XDG_CONFIG_HOME and HOME.
absl::StatusOr<std::string> ContextsPath(const Environment& environment);

// No file is no contexts. ERRORS: InvalidArgument with the file's name when it
// is not ours; those of files.
absl::StatusOr<Contexts> LoadContexts(const std::string& path);

// Only the user can read what is written.
absl::Status SaveContexts(const Contexts& contexts, const std::string& path);

// Where the server is, and how to speak to it. Each value is the flag's, else
// the environment's (OPTFARM_SERVER, OPTFARM_TOKEN), else that of the context
// that --context, OPTFARM_CONTEXT or the file names. A server that is not the
// context's is sent nothing of it: with --server, or OPTFARM_SERVER without
// --context, tokens and TLS files of the context are left out.
// ERRORS: UsageError for a context that is not there, with the nearest names;
// those of LoadContexts.
absl::StatusOr<FarmAddress> FindFarm(const GlobalFlags& flags,
                                     const Environment& environment);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_CONTEXTS_H_
