#include "device_agent/adb_client.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/subprocess.h"

namespace optfarm::device_agent {
namespace {

// UNITS: bytes of output that are read, and that an error shows.
constexpr uint64_t kMaxOutput = 4 << 20;
constexpr size_t kShownOutput = 400;
constexpr absl::Duration kGrace = absl::Seconds(1);

absl::string_view End(absl::string_view text) {
  while (absl::EndsWith(text, "\n")) text.remove_suffix(1);
  return text.size() > kShownOutput ? text.substr(text.size() - kShownOutput)
                                    : text;
}

}  // namespace

absl::StatusOr<AdbClient> AdbClient::Make(const std::string& program) {
  if (absl::StrContains(program, '/')) {
    if (::access(program.c_str(), X_OK) == 0) return AdbClient(program);
    return absl::NotFoundError(
        absl::StrCat("--adb: '", program, "' is no program"));
  }
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    std::string candidate = JoinPath(folder, program);
    if (::access(candidate.c_str(), X_OK) == 0) {
      return AdbClient(std::move(candidate));
    }
  }
  return absl::NotFoundError(
      absl::StrCat("there is no '", program,
                   "' in PATH; install Android's platform tools, or say where "
                   "adb is with --adb"));
}

absl::StatusOr<std::string> AdbClient::Run(std::vector<std::string> arguments,
                                           absl::Duration limit) const {
  OPTFARM_ASSIGN_OR_RETURN(const std::string folder,
                           MakeTemporaryFolder("adb-"));
  const ScopedFolder remover(folder);
  const std::string doing = absl::StrCat("adb ", absl::StrJoin(arguments, " "));
  SubprocessOptions options;
  options.output_file = JoinPath(folder, "output");
  options.argv = std::move(arguments);
  options.argv.insert(options.argv.begin(), program_);
  OPTFARM_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Start(options));
  const auto exit = process.Wait(limit);
  if (!exit.has_value()) process.Stop(kGrace);
  const std::string output =
      ReadFile(options.output_file, kMaxOutput).value_or("");
  if (!exit.has_value()) {
    return absl::UnavailableError(
        absl::StrCat(doing.substr(0, kShownOutput), ": no end after ",
                     absl::FormatDuration(limit), ": ", End(output)));
  }
  if (exit->ok()) return output;
  return absl::UnavailableError(absl::StrCat(doing.substr(0, kShownOutput),
                                             ": ", exit->ToString(), ": ",
                                             End(output)));
}

absl::StatusOr<std::string> AdbClient::RunOn(const std::string& serial,
                                             std::vector<std::string> arguments,
                                             absl::Duration limit) const {
  arguments.insert(arguments.begin(), {"-s", serial});
  return Run(std::move(arguments), limit);
}

}  // namespace optfarm::device_agent
