// optctl doctor: what is wrong with an installation, and what to do about it.

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

constexpr absl::Duration kSkewNoticed = absl::Seconds(5);
constexpr absl::Duration kSkewHarmful = absl::Minutes(5);
constexpr absl::Duration kExpiresSoon = absl::Hours(24 * 7);
// UNITS: bytes. What a server wants to be free for its uploads, and more.
constexpr uint64_t kLittleSpace = uint64_t{1} << 30;

enum class Verdict { kGood, kRemark, kWrong };

struct Finding {
  std::string what;
  Verdict verdict = Verdict::kGood;
  // What was seen; for what is not good, what to do.
  std::string text;
};

// Collects findings. THREADS: one.
class Findings {
 public:
  void Good(absl::string_view what, absl::string_view text) {
    Add(what, Verdict::kGood, text);
  }
  void Remark(absl::string_view what, absl::string_view text) {
    Add(what, Verdict::kRemark, text);
  }
  void Wrong(absl::string_view what, absl::string_view text) {
    Add(what, Verdict::kWrong, text);
  }
  const std::vector<Finding>& all() const { return all_; }

 private:
  void Add(absl::string_view what, Verdict verdict, absl::string_view text) {
    all_.push_back({std::string(what), verdict, std::string(text)});
  }
  std::vector<Finding> all_;
};

const char* WordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok";
    case Verdict::kRemark:
      return "look";
    case Verdict::kWrong:
      return "WRONG";
  }
  return "";
}

// Why a first call did not get through.
void ExplainNoAnswer(const absl::Status& status, Findings& findings) {
  const std::string text(status.message());
  const std::string lower = absl::AsciiStrToLower(text);
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    findings.Good("server", "it answers");
    return findings.Wrong("token", text);
  }
  if (absl::StrContains(lower, "handshake") ||
      absl::StrContains(lower, "certificate")) {
    return findings.Wrong(
        "TLS", absl::StrCat(text,
                            "; --tls_ca must name the CA that signed the "
                            "server's certificate, and the server must use "
                            "TLS"));
  }
  if (absl::StrContains(lower, "closed") || absl::StrContains(lower, "reset")) {
    return findings.Wrong(
        "TLS", absl::StrCat(text, "; if the server uses TLS, give --tls_ca"));
  }
  if (absl::IsUnimplemented(status)) {
    return findings.Wrong("version",
                          "the server is older than this optctl and does not "
                          "support this call; upgrade the server");
  }
  findings.Wrong("server", text);
}

void CheckVersion(const v1::WhoAmIResponse& who, Findings& findings) {
  if (who.version() == OPTFARM_VERSION) {
    return findings.Good("version", who.version());
  }
  findings.Remark(
      "version",
      absl::StrCat("the server is ", who.version(), " and this optctl is ",
                   OPTFARM_VERSION, "; upgrade the older one"));
}

void CheckClock(const v1::WhoAmIResponse& who, absl::Time now,
                Findings& findings) {
  const absl::Duration skew = rpc::FromTimestamp(who.time()) - now;
  const absl::Duration shown =
      absl::Trunc(absl::AbsDuration(skew), absl::Milliseconds(100));
  const std::string text =
      shown == absl::ZeroDuration()
          ? "the server's clock and this machine's agree"
          : absl::StrCat("the server's clock is ", absl::FormatDuration(shown),
                         skew < absl::ZeroDuration() ? " behind" : " ahead of",
                         " this machine's");
  if (absl::AbsDuration(skew) > kSkewHarmful) {
    findings.Wrong("clock", absl::StrCat(text, "; set both by NTP"));
  } else if (absl::AbsDuration(skew) > kSkewNoticed) {
    findings.Remark("clock", absl::StrCat(text, "; set both by NTP"));
  } else {
    findings.Good("clock", text);
  }
}

void CheckToken(const v1::WhoAmIResponse& who, absl::Time now,
                Findings& findings) {
  std::vector<std::string> scopes;
  for (const int scope : who.scopes()) {
    scopes.push_back(absl::AsciiStrToLower(
        v1::Access::Scope_Name(static_cast<v1::Access::Scope>(scope))));
  }
  std::string text = absl::StrCat(
      who.name(), ", may ", absl::StrJoin(scopes, ", "),
      who.project().empty() ? ", sees every project"
                            : absl::StrCat(", project ", who.project()));
  if (who.name() == "anybody") {
    return findings.Remark(
        "token",
        "the server requires none: anybody who reaches it may do everything; "
        "start it with --token_file unless you are its only user");
  }
  if (!who.has_expire_time()) return findings.Good("token", text);
  const absl::Duration left = rpc::FromTimestamp(who.expire_time()) - now;
  absl::StrAppend(&text, ", expires in ",
                  absl::FormatDuration(absl::Trunc(left, absl::Minutes(1))));
  if (left > kExpiresSoon) return findings.Good("token", text);
  findings.Remark("token", absl::StrCat(text,
                                        "; create a new one with optctl token "
                                        "create"));
}

void CheckFarm(const v1::WhoAmIResponse& who, Findings& findings) {
  if (who.workers() > 0) {
    findings.Good("workers", absl::StrCat(who.workers(), " at work"));
  } else {
    findings.Wrong("workers",
                   "none has called within a minute, so no job will run; start "
                   "optfarm-worker --server=HOST:PORT");
  }
  if (who.agents() > 0) {
    findings.Good("agents", absl::StrCat(who.agents(), " at work"));
  } else {
    findings.Remark("agents",
                    "none has called within a minute, so there will be no "
                    "benchmarks; start optfarm-agent on a device");
  }
}

void CheckDevices(const v1::ListDevicesResponse& response, Findings& findings) {
  int good = 0;
  for (const v1::Device& device : response.devices()) {
    const std::string what = absl::StrCat("device ", device.info().name());
    switch (device.state()) {
      case v1::Device::OFFLINE:
        findings.Remark(what,
                        "silent; look at its agent and network, or optctl "
                        "devices retire it");
        break;
      case v1::Device::QUARANTINED:
        findings.Remark(
            what, absl::StrCat("quarantined: ", device.state_reason(),
                               "; look at it, then optctl devices enable it"));
        break;
      case v1::Device::DISABLED:
        findings.Remark(what, absl::StrCat("disabled ", device.state_reason()));
        break;
      default:
        ++good;
    }
  }
  if (good > 0) {
    findings.Good("devices", absl::StrCat(good, " available"));
  } else {
    findings.Remark("devices", "none available");
  }
}

void CheckDataDir(const std::string& path, Findings& findings) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return findings.Wrong(
        "data folder",
        absl::StrCat("'", path,
                     "' is not a folder; --data_dir names the server's"));
  }
  if ((info.st_mode & 077) != 0) {
    findings.Wrong("data folder",
                   absl::StrCat("users other than its owner may access '", path,
                                "'; chmod 700 it"));
  } else {
    findings.Good("data folder", "only its owner may access it");
  }
  for (const char* name : {"optfarm.db", "tokens.db", "audit.db"}) {
    const std::string file = JoinPath(path, name);
    if (::stat(file.c_str(), &info) != 0) {
      findings.Remark(name, "not there; no server has used this folder yet");
    } else if ((info.st_mode & 077) != 0) {
      findings.Wrong(name,
                     absl::StrCat("other users may read it; chmod 600 ", file));
    }
  }
  struct statvfs disk;
  if (::statvfs(path.c_str(), &disk) != 0) return;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::string text = absl::StrCat(free >> 20, " MiB of disk are free");
  if (free < kLittleSpace) {
    findings.Wrong("disk", absl::StrCat(text,
                                        "; free some, or delete old results "
                                        "(--keep_jobs_days)"));
  } else {
    findings.Good("disk", text);
  }
}

// The programs that came with this one.
void CheckPrograms(Findings& findings) {
  std::error_code error;
  const std::filesystem::path own =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  std::vector<std::string> there;
  for (const char* name :
       {"optfarm-server", "optfarm-worker", "optfarm-agent"}) {
    const std::string path = (own.parent_path() / name).string();
    if (::access(path.c_str(), X_OK) == 0) there.emplace_back(name);
  }
  if (there.empty()) {
    return findings.Good("programs", "only optctl is installed here");
  }
  findings.Good("programs", absl::StrCat("optctl, ", absl::StrJoin(there, ", "),
                                         " in ", own.parent_path().string()));
}

class Doctor final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("data_dir", "FOLDER",
                "Also check this data folder of a server on this machine.",
                &data_dir_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    Findings findings;
    CheckPrograms(findings);
    if (!data_dir_.empty()) CheckDataDir(data_dir_, findings);
    // An unreadable token file is found here.
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    Ask(*client, context.clock->Now(), findings);
    Table table({{"what", "WHAT"}, {"verdict", "VERDICT"}, {"text", "TEXT"}});
    bool wrong = false;
    for (const Finding& finding : findings.all()) {
      wrong |= finding.verdict == Verdict::kWrong;
      table.AddRow({Cell::Text(finding.what),
                    Cell::Text(WordOf(finding.verdict)),
                    Cell::Text(finding.text)});
    }
    *context.out << table.ToFormat(context.format);
    return wrong ? ExitCode::kJobFailed : ExitCode::kOk;
  }

 private:
  static void Ask(FarmClient& client, absl::Time now, Findings& findings) {
    const absl::StatusOr<v1::WhoAmIResponse> who = client.WhoAmI();
    if (!who.ok()) return ExplainNoAnswer(who.status(), findings);
    findings.Good("server", "it answers");
    CheckVersion(*who, findings);
    CheckClock(*who, now, findings);
    CheckToken(*who, now, findings);
    CheckFarm(*who, findings);
    v1::ListDevicesRequest request;
    request.set_page_size(1000);
    const auto devices = client.ListDevices(request);
    if (devices.ok()) {
      CheckDevices(*devices, findings);
    } else if (!absl::IsPermissionDenied(devices.status())) {
      findings.Wrong("devices", devices.status().message());
    }
  }

  std::string data_dir_;
};

}  // namespace

CommandInfo DoctorCommand() {
  return {"doctor", "Check this installation and report problems.",
          "Checks the server, its version and clock, the token, TLS, workers, "
          "agents and devices; with --data_dir also a server's folder on this "
          "machine. The exit code is 1 if something is wrong.\n"
          "  optctl doctor --server=farm:7070 --token_file=ci.token",
          [] { return std::unique_ptr<Command>(new Doctor); }};
}

}  // namespace optfarm::client_cli
