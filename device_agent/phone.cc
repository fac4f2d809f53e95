#include "device_agent/phone.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/benchmark_plan.h"

namespace optfarm::device_agent {
namespace {

// Everything that is put into commands for the phone's shell is made of these,
// digests and words that need no quoting.
constexpr char kBlobs[] = "/data/local/tmp/optfarm/blobs";
constexpr char kTask[] = "/data/local/tmp/optfarm/task";

constexpr absl::Duration kShort = absl::Seconds(20);
constexpr absl::Duration kTransfer = absl::Minutes(10);
constexpr uint64_t kMaxLogBytes = 1 << 20;
// UNITS: characters of a SHA-256 digest.
constexpr size_t kHexDigest = 64;

bool IsFull(const absl::Status& status) {
  return absl::StrContains(status.message(), "No space left");
}

// A word of our own that the phone's shell takes as it is.
bool IsPlain(absl::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) ||
                  absl::StrContains("-_=.,/", static_cast<char>(c));
         });
}

}  // namespace

absl::StatusOr<std::string> Phone::Shell(const std::string& command,
                                         absl::Duration limit) const {
  return adb_.RunOn(serial_, {"shell", command}, limit);
}

absl::StatusOr<v1::Completion> Phone::Run(const v1::LeasedTask& lease,
                                          const rpc::TaskFolder& folder,
                                          const PhoneTask& task) {
  OPTFARM_RETURN_IF_ERROR(Begin());
  const auto clean_up = absl::MakeCleanup([this] {
    const absl::Status removed = Clear();
    if (!removed.ok()) {
      LogWarning("what is left on phone ", serial_,
                 " is removed before its next task: ", removed.message());
    }
  });
  absl::StatusOr<std::string> program = LayOut(lease, folder, task);
  if (!program.ok() && IsFull(program.status())) {
    LogInfo("phone ", serial_, " is full; files of earlier tasks are removed");
    OPTFARM_RETURN_IF_ERROR(
        Shell(absl::StrCat("rm -rf ", kBlobs), kShort).status());
    OPTFARM_RETURN_IF_ERROR(Begin());
    program = LayOut(lease, folder, task);
    if (!program.ok() && IsFull(program.status())) {
      return absl::UnavailableError(absl::StrCat(
          "phone ", serial_,
          " has no room in /data; free some: ", program.status().message()));
    }
  }
  OPTFARM_RETURN_IF_ERROR(program.status());
  task.on_ready();
  const absl::Status ran = Start(task, *program, folder);
  // The phone's own words explain a failure better than adb's.
  absl::StatusOr<v1::Completion> outcome = Fetch(folder);
  if (outcome.ok()) return outcome;
  return ran.ok() ? outcome.status() : ran;
}

absl::Status Phone::Clear() const {
  // A task that hung, or whose agent died, may still be running. pkill would
  // find its own shell by the command line, but for the brackets.
  OPTFARM_RETURN_IF_ERROR(
      Shell(absl::StrCat("pkill -9 -f '[r]un_task=", kTask, "'; true"), kShort)
          .status());
  return Shell(absl::StrCat("rm -rf ", kTask), kShort).status();
}

absl::Status Phone::Begin() const {
  OPTFARM_RETURN_IF_ERROR(Clear());
  return Shell(absl::StrCat("mkdir -p ", kBlobs, " ", kTask, "/out"), kShort)
      .status();
}

absl::StatusOr<std::string> Phone::DigestOf(const std::string& path) const {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string said,
      Shell(absl::StrCat("sha256sum ", path, " 2>/dev/null || true"),
            kTransfer));
  const std::string digest = said.substr(0, said.find_first_of(" \t\r\n"));
  return digest.size() == kHexDigest ? digest : "";
}

absl::StatusOr<std::string> Phone::PushOnce(const std::string& path,
                                            bool executable) const {
  OPTFARM_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
  const std::string target = absl::StrCat(kBlobs, "/", sha256);
  OPTFARM_ASSIGN_OR_RETURN(const std::string there, DigestOf(target));
  if (there == sha256) return target;
  const std::string partial = target + ".partial";
  OPTFARM_RETURN_IF_ERROR(Send(path, partial));
  OPTFARM_ASSIGN_OR_RETURN(const std::string sent, DigestOf(partial));
  // Old phones have no sha256sum. What was sent to them a moment ago is taken
  // as it is, and it is sent again for each task.
  if (!sent.empty() && sent != sha256) {
    (void)Shell(absl::StrCat("rm -f ", partial), kShort);
    return absl::UnavailableError(absl::StrCat(
        "phone ", serial_, " got file ", sha256, " as ", sent,
        ": it was changed on its way or on the phone; look at its cable and "
        "at what else writes to /data/local/tmp"));
  }
  OPTFARM_RETURN_IF_ERROR(
      Shell(
          absl::StrCat(executable ? "chmod 755 " : "chmod 644 ", partial,
                       " && rm -rf ", target, " && mv ", partial, " ", target),
          kShort)
          .status());
  return target;
}

absl::Status Phone::Send(const std::string& path, const std::string& to) const {
  return adb_.RunOn(serial_, {"push", path, to}, kTransfer).status();
}

absl::StatusOr<std::string> Phone::LayOut(const v1::LeasedTask& lease,
                                          const rpc::TaskFolder& folder,
                                          const PhoneTask& task) const {
  OPTFARM_ASSIGN_OR_RETURN(std::string program,
                           PushOnce(task.program, /*executable=*/true));
  std::vector<std::string> graphs = GraphPaths(lease, folder);
  const std::vector<std::string> checks = CheckPaths(lease, folder);
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::string links = absl::StrCat("mkdir -p ", kTask, "/in/variant", i);
    for (const std::string& path : {graphs[i], checks[i]}) {
      if (path.empty()) continue;
      OPTFARM_ASSIGN_OR_RETURN(const std::string blob,
                               PushOnce(path, /*executable=*/false));
      absl::StrAppend(&links, " && ln -s ", blob, " ", kTask, "/in/variant", i,
                      "/", BaseName(path));
    }
    OPTFARM_RETURN_IF_ERROR(Shell(links, kShort).status());
  }
  OPTFARM_RETURN_IF_ERROR(Send(JoinPath(folder.path(), "task.pb"),
                               absl::StrCat(kTask, "/task.pb")));
  return program;
}

absl::Status Phone::Start(const PhoneTask& task, const std::string& program,
                          const rpc::TaskFolder& folder) const {
  for (const std::string& flag : task.flags) {
    if (!IsPlain(flag)) {
      return absl::InternalError(
          absl::StrCat("flag '", flag, "' cannot be passed to a phone"));
    }
  }
  if (task.fixed_performance) {
    const auto set =
        Shell("cmd power set-fixed-performance-mode-enabled true", kShort);
    if (!set.ok()) {
      folder.AppendLog(
          absl::StrCat("no fixed performance: ", set.status().message()));
    }
  }
  const absl::StatusOr<std::string> output =
      Shell(absl::StrCat(program, " --run_task=", kTask, " ",
                         absl::StrJoin(task.flags, " ")),
            task.limit);
  if (output.ok()) {
    folder.AppendLog(absl::StrCat("on phone ", serial_, ":\n",
                                  output->substr(0, kMaxLogBytes)));
  }
  if (task.fixed_performance) {
    (void)Shell("cmd power set-fixed-performance-mode-enabled false", kShort);
  }
  return output.status();
}

absl::StatusOr<v1::Completion> Phone::Fetch(
    const rpc::TaskFolder& folder) const {
  const std::string pulled = JoinPath(folder.path(), "phone");
  const std::string state = rpc::TaskFolder(pulled).state();
  OPTFARM_RETURN_IF_ERROR(MakeFolders(state));
  OPTFARM_RETURN_IF_ERROR(
      adb_.RunOn(serial_,
                 {"pull", absl::StrCat(kTask, "/state/result.pb"),
                  JoinPath(state, "result.pb")},
                 kTransfer)
          .status());
  absl::StatusOr<v1::Completion> completion =
      rpc::TaskFolder(pulled).ReadCompletion();
  if (completion.ok()) return completion;
  return absl::UnavailableError(absl::StrCat(
      "phone ", serial_,
      " left no outcome that can be read: ", completion.status().message()));
}

}  // namespace optfarm::device_agent
