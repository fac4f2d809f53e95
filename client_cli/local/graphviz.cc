#include "client_cli/local/graphviz.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "client_cli/flags/exit_code.h"

namespace optfarm::client_cli {
namespace {

// What graphviz says may be long; its first words tell most.
constexpr size_t kMostWordsBytes = 500;

// The file that PATH gives for `name`; "" for none.
std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(
           path == nullptr ? "/usr/bin:/bin" : path, ':', absl::SkipEmpty())) {
    const std::string candidate = JoinPath(folder, name);
    if (access(candidate.c_str(), X_OK) == 0 && !IsFolder(candidate)) {
      return candidate;
    }
  }
  return "";
}

}  // namespace

absl::Status DrawSvg(absl::string_view dot, const std::string& path,
                     absl::Duration limit) {
  const std::string program = FindProgram("dot");
  if (program.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", path,
                     "' needs graphviz, whose program 'dot' is not in PATH; "
                     "install it (apt install graphviz) or draw the DOT file "
                     "elsewhere"));
  }
  OPTFARM_ASSIGN_OR_RETURN(std::string made, MakeTemporaryFolder("optctl-dot"));
  const ScopedFolder folder(std::move(made));
  const std::string in = JoinPath(folder.path(), "graph.dot");
  const std::string out = JoinPath(folder.path(), "graph.svg");
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(in, dot));
  SubprocessOptions options;
  options.argv = {program, "-Tsvg", "-o", out, in};
  options.output_file = JoinPath(folder.path(), "words");
  OPTFARM_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
  const std::optional<SubprocessExit> exit = child.Wait(limit);
  if (!exit) {
    child.Stop(absl::Seconds(1));
    return WithExitCode(
        absl::DeadlineExceededError(absl::StrCat(
            "'", path, "': graphviz did not finish within ",
            absl::FormatDuration(limit),
            "; large graphs take it long, draw a part of this one")),
        ExitCode::kJobFailed);
  }
  const absl::StatusOr<std::string> svg = ReadFile(out);
  if (!exit->ok() || !svg.ok()) {
    return absl::InternalError(absl::StrCat(
        "'", path, "': ", program, " ended with ", exit->ToString(), ": ",
        ReadFile(options.output_file).value_or("").substr(0, kMostWordsBytes)));
  }
  return WriteFileAtomically(path, *svg);
}

}  // namespace optfarm::client_cli
